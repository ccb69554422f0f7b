"""Putting an image into a machine's virtual drive, and taking it out, seen each time."""

from __future__ import annotations

from clusterctl.edges.redfish.session import Session, Timing
from clusterctl.edges.redfish.write import Change, Sight, Writer
from clusterctl.fleet.boot import check_uri
from clusterctl.fleet.node import Serial
from clusterctl.formats.redfish.boot import Slot, Tray, insert_bodies, read_tray
from clusterctl.ports import Deadline


class MediaTray:
    """Virtual media of machine `serial` through one session. `steps` records what was asked and seen."""

    def __init__(self, session: Session, timing: Timing, serial: Serial) -> None:
        self._session = session
        self._timing = timing
        self._writer = Writer(session, timing, serial)
        self._tray = Tray(serial, ())

    @property
    def steps(self) -> list[str]:
        return self._writer.steps

    def insert(self, uri: str, deadline: Deadline) -> None:
        """The image is in one of the drives; what others put into them stays there."""
        check_uri(uri)

        def look(within: Deadline) -> Sight:
            tray = self._look(within)
            return Sight(tray.serial, tray.holding(uri) is not None, str(tray))

        first = self._writer.look(look, deadline)
        if first.seen:
            return
        slot = self._tray.free()
        doing = f"insert {uri} into {slot.path}"
        if slot.insert:
            change = Change(doing, "POST", slot.insert, insert_bodies(uri), look, seconds=self._timing.settle)
        else:
            body = {"Image": uri, "Inserted": True}
            change = Change(doing, "PATCH", slot.path, (body, {"Image": uri}), look, seconds=self._timing.settle)
        self._writer.make(change, deadline, first)

    def eject(self, uri: str, deadline: Deadline) -> None:
        """The image is in none of the drives; those with other images are left alone."""

        def look(within: Deadline) -> Sight:
            tray = self._look(within)
            return Sight(tray.serial, tray.holding(uri) is None, str(tray))

        first = self._writer.look(look, deadline)
        while (slot := self._tray.holding(uri)) is not None:
            self._writer.make(self._ejecting(slot, uri), deadline)
            self._writer.look(look, deadline)
        self.steps.append(first.found)

    def _ejecting(self, slot: Slot, uri: str) -> Change:
        def look(within: Deadline) -> Sight:
            tray = self._look(within)
            held = any(other.path == slot.path and other.holds(uri) for other in tray.slots)
            return Sight(tray.serial, not held, str(tray), self._session.etag(slot.path))

        doing = f"eject {uri} from {slot.path}"
        if slot.eject:
            return Change(doing, "POST", slot.eject, ({},), look, seconds=self._timing.settle)
        bodies = ({"Image": None, "Inserted": False}, {"Image": None})
        return Change(doing, "PATCH", slot.path, bodies, look, seconds=self._timing.settle)

    def _look(self, deadline: Deadline) -> Tray:
        self._tray, _ = self._session.walk(read_tray, deadline)
        return self._tray
