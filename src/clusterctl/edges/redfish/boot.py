"""The one-time boot override and virtual media: chooses the device of the next boot, and the image in a virtual drive.

Both are verified by reading them back.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from clusterctl.edges.redfish.quirks import STANDARD, Quirks, quirks_of
from clusterctl.edges.redfish.session import RedfishSession
from clusterctl.edges.redfish.timing import Timing
from clusterctl.edges.redfish.write import NotDoneError, Read, RedfishChange, Writer, WriteReading, more_specific
from clusterctl.fleet.bmc.boot import BootOnce, check_uri
from clusterctl.fleet.node import Serial
from clusterctl.formats.redfish.boot import BootControl, BootSlot, Tray, bodies, insert_bodies, read_boot, read_tray
from clusterctl.formats.redfish.tree import Resource, Unreadable
from clusterctl.ports import Deadline

_READINGS = 2
"""BMCs are known to accept an override and to revert it a moment later."""


class BootOverride:
    """Boot override of machine `serial` through one session. `steps` records requests and readings."""

    def __init__(self, session: RedfishSession, timing: Timing, serial: Serial) -> None:
        self._session = session
        self._timing = timing
        self._writer = Writer(session, timing, serial)
        self._control: BootControl | None = None

    @property
    def steps(self) -> list[str]:
        """Requests and readings, for the evidence."""
        return self._writer.steps

    def once(self, wish: BootOnce, deadline: Deadline) -> None:
        """Set the device of the next boot, and verify it."""
        first = self._writer.read(lambda within: self._reading(wish, "", within), deadline)
        if first.done or self._control is None:
            return
        failure: NotDoneError | None = None
        for change in self._changes(self._control, wish, deadline):
            try:
                self._writer.make(change, deadline)
            except NotDoneError as error:
                self.steps.append(error.message)
                failure = more_specific(failure, error)
            else:
                return
        if failure is not None:
            raise failure

    def _changes(self, control: BootControl, wish: BootOnce, deadline: Deadline) -> list[RedfishChange]:
        """Return the ways: the settings object where there is one, the System, the manager's attributes."""
        quirks = self._quirks(control, deadline)
        forms = bodies(control, wish, whole=quirks.whole_boot)
        changes = [
            self._change(f"boot once from {wish}", path, forms, partial(self._reading, wish, path))
            for path in control.etags
        ]
        attributes = quirks.attributes_boot.get(wish.source)
        if attributes is not None and control.manager is not None and not wish.uri:
            path, doing = f"{control.manager}/Attributes", f"boot once from {wish} by the manager's attributes"
            read = partial(self._attributes_reading, path, attributes)
            changes.append(self._change(doing, path, ({"Attributes": dict(attributes)},), read))
        return changes

    def _change(self, doing: str, path: str, forms: tuple[Mapping[str, Any], ...], read: Read) -> RedfishChange:
        return RedfishChange(doing, "PATCH", path, forms, read, seconds=self._timing.settle, readings=_READINGS)

    def _reading(self, wish: BootOnce, path: str, deadline: Deadline) -> WriteReading:
        control, _ = self._session.walk(read_boot, deadline)
        self._control = control
        etag = control.etags.get(path, "") or self._session.etag(path)
        return WriteReading(
            control.serial, control.gives(wish), "; ".join(dict.fromkeys(map(str, control.shown))), etag
        )

    def _attributes_reading(self, path: str, wanted: Mapping[str, str], deadline: Deadline) -> WriteReading:
        control, _ = self._session.walk(read_boot, deadline)
        answer = self._session.read(path, deadline)
        found = {} if isinstance(answer, Unreadable) else answer.get("Attributes")
        known = {name: found.get(name) for name in wanted} if isinstance(found, Mapping) else {}
        text = ", ".join(f"{name} {value}" for name, value in known.items()) or f"nothing at {path}"
        return WriteReading(control.serial, known == wanted, text, self._session.etag(path))

    def _quirks(self, control: BootControl, deadline: Deadline) -> Quirks:
        """Return the quirks by the service root; where that names no vendor, by the manager."""
        if self._session.quirks is STANDARD and control.manager is not None:
            answer = self._session.read(control.manager, deadline)
            if not isinstance(answer, Unreadable):
                self._session.quirks = quirks_of(Resource(control.manager, answer))
        return self._session.quirks


class VirtualMedia:
    """Virtual drives of machine `serial` through one session. `steps` records requests and readings."""

    def __init__(self, session: RedfishSession, timing: Timing, serial: Serial) -> None:
        self._session = session
        self._timing = timing
        self._writer = Writer(session, timing, serial)
        self._tray = Tray(serial, ())

    @property
    def steps(self) -> list[str]:
        """Requests and readings, for the evidence."""
        return self._writer.steps

    def insert(self, uri: str, deadline: Deadline) -> None:
        """Insert the image into a free drive; images that others inserted stay."""
        check_uri(uri)

        def read(within: Deadline) -> WriteReading:
            tray = self._read(within)
            return WriteReading(tray.serial, tray.holding(uri) is not None, str(tray))

        first = self._writer.read(read, deadline)
        if first.done:
            return
        slot = self._tray.free()
        doing, seconds = f"insert {uri} into {slot.path}", self._timing.settle
        if slot.insert:
            change = RedfishChange(doing, "POST", slot.insert, insert_bodies(uri), read, seconds=seconds)
        else:
            body = {"Image": uri, "Inserted": True}
            change = RedfishChange(doing, "PATCH", slot.path, (body, {"Image": uri}), read, seconds=seconds)
        self._writer.make(change, deadline, first)

    def eject(self, uri: str, deadline: Deadline) -> None:
        """Eject the image from every drive that holds it; drives with other images are left alone."""

        def read(within: Deadline) -> WriteReading:
            tray = self._read(within)
            return WriteReading(tray.serial, tray.holding(uri) is None, str(tray))

        first = self._writer.read(read, deadline)
        while (slot := self._tray.holding(uri)) is not None:
            self._writer.make(self._ejecting(slot, uri), deadline)
            self._writer.read(read, deadline)
        self.steps.append(first.found)

    def _ejecting(self, slot: BootSlot, uri: str) -> RedfishChange:
        def read(within: Deadline) -> WriteReading:
            tray = self._read(within)
            held = any(other.path == slot.path and other.holds(uri) for other in tray.slots)
            return WriteReading(tray.serial, not held, str(tray), self._session.etag(slot.path))

        doing, seconds = f"eject {uri} from {slot.path}", self._timing.settle
        if slot.eject:
            return RedfishChange(doing, "POST", slot.eject, ({},), read, seconds=seconds)
        forms = ({"Image": None, "Inserted": False}, {"Image": None})
        return RedfishChange(doing, "PATCH", slot.path, forms, read, seconds=seconds)

    def _read(self, deadline: Deadline) -> Tray:
        self._tray, _ = self._session.walk(read_tray, deadline)
        return self._tray
