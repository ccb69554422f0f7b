"""Choosing from where a machine boots, and seeing that the BMC has it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Any

from clusterctl.edges.redfish.quirks import STANDARD, Quirks, quirks_of
from clusterctl.edges.redfish.session import Session, Timing
from clusterctl.edges.redfish.write import Change, Look, NotDoneError, Sight, Writer, telling
from clusterctl.fleet.boot import BootOnce
from clusterctl.fleet.node import Serial
from clusterctl.formats.redfish.boot import BootControl, bodies, read_boot
from clusterctl.formats.redfish.boot_order import BootOrder, read_boot_order
from clusterctl.formats.redfish.tree import Resource, Unreadable
from clusterctl.ports import Deadline

_LOOKS = 2
"""BMCs are known to accept an override and to take it back a moment later."""


_AT_NEXT_BOOT = "some BMCs take a boot order over at the next boot: cycle its power and ask again, else set it by hand"


class BootMenu:
    """Boot settings of machine `serial` through one session. `steps` records what was asked and seen."""

    def __init__(self, session: Session, timing: Timing, serial: Serial) -> None:
        self._session = session
        self._timing = timing
        self._writer = Writer(session, timing, serial)
        self._control: BootControl | None = None
        self._order: BootOrder | None = None

    @property
    def steps(self) -> list[str]:
        return self._writer.steps

    def once(self, wish: BootOnce, deadline: Deadline) -> None:
        """The next boot is the wished one, and was seen so."""
        first = self._writer.look(lambda within: self._sight(wish, "", within), deadline)
        if first.seen or self._control is None:
            return
        failure: NotDoneError | None = None
        for way in self._ways(self._control, wish, deadline):
            try:
                self._writer.make(way, deadline)
            except NotDoneError as error:
                self.steps.append(error.message)
                failure = telling(failure, error)
            else:
                return
        if failure is not None:
            raise failure

    def disk_first(self, deadline: Deadline) -> None:
        """The machine boots from its disks from now on, or from its next boot on where the BMC says so."""
        first = self._writer.look(self._order_sight, deadline)
        if first.seen or self._order is None:
            return
        doing = f"boot order {', '.join(self._order.from_disk)}"
        change = self._change(doing, self._order.path, (self._order.body,), self._order_sight)
        self._writer.make(replace(change, remedy=_AT_NEXT_BOOT), deadline, first)

    def _ways(self, control: BootControl, wish: BootOnce, deadline: Deadline) -> list[Change]:
        """Through the settings object where there is one, through the System, through the manager's attributes."""
        quirks = self._quirks(control, deadline)
        wanted = bodies(control, wish, whole=quirks.whole_boot)
        ways = [
            self._change(f"boot once from {wish}", path, wanted, partial(self._sight, wish, path))
            for path in control.etags
        ]
        attributes = quirks.attributes_boot.get(wish.source)
        if attributes is not None and control.manager is not None and not wish.uri:
            path, doing = f"{control.manager}/Attributes", f"boot once from {wish} by the manager's attributes"
            look = partial(self._attributes_sight, path, attributes)
            ways.append(self._change(doing, path, ({"Attributes": dict(attributes)},), look))
        return ways

    def _change(self, doing: str, path: str, wanted: tuple[Mapping[str, Any], ...], look: Look) -> Change:
        return Change(doing, "PATCH", path, wanted, look, seconds=self._timing.settle, looks=_LOOKS)

    def _sight(self, wish: BootOnce, path: str, deadline: Deadline) -> Sight:
        control, _ = self._session.walk(read_boot, deadline)
        self._control = control
        etag = control.etags.get(path, "") or self._session.etag(path)
        return Sight(control.serial, control.gives(wish), "; ".join(dict.fromkeys(map(str, control.shown))), etag)

    def _attributes_sight(self, path: str, wanted: Mapping[str, str], deadline: Deadline) -> Sight:
        control, _ = self._session.walk(read_boot, deadline)
        told = self._session.read(path, deadline)
        found = {} if isinstance(told, Unreadable) else told.get("Attributes")
        known = {name: found.get(name) for name in wanted} if isinstance(found, Mapping) else {}
        words = ", ".join(f"{name} {value}" for name, value in known.items()) or f"nothing at {path}"
        return Sight(control.serial, known == wanted, words, self._session.etag(path))

    def _order_sight(self, deadline: Deadline) -> Sight:
        order, _ = self._session.walk(read_boot_order, deadline)
        self._order = order
        return Sight(order.serial, order.disk_first, str(order), order.etag or self._session.etag(order.path))

    def _quirks(self, control: BootControl, deadline: Deadline) -> Quirks:
        """By the root; where that keeps silent, by the manager."""
        if self._session.quirks is STANDARD and control.manager is not None:
            told = self._session.read(control.manager, deadline)
            if not isinstance(told, Unreadable):
                self._session.quirks = quirks_of(Resource(control.manager, told))
        return self._session.quirks
