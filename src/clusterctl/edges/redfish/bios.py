"""Setting BIOS attributes for the next boot, and seeing that they wait there."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from clusterctl.edges.redfish.session import Session, Timing
from clusterctl.edges.redfish.write import Change, Sight, Writer
from clusterctl.fleet.baseline import Value
from clusterctl.fleet.node import Serial
from clusterctl.formats.redfish.bios import BiosControl, read_bios
from clusterctl.ports import Deadline

_LOOKS = 2
"""As with a boot override: what is accepted is not always kept."""
_REMEDY = (
    "look at the BIOS by hand: another setting may forbid it, or a job that waits already (Dell: clear the job queue)"
)
Seen = Callable[[BiosControl], bool]


class BiosDesk:
    """BIOS attributes of machine `serial` through one session. `steps` records what was asked and seen."""

    def __init__(self, session: Session, timing: Timing, serial: Serial) -> None:
        self._session = session
        self._timing = timing
        self._writer = Writer(session, timing, serial)

    @property
    def steps(self) -> list[str]:
        return self._writer.steps

    def prepare(self, wanted: Mapping[str, Value], deadline: Deadline) -> BiosControl:
        """The next boot brings them, and was seen to be about to; at Dell there is a job that does it."""
        control = self._look(deadline)
        if not control.pends(wanted):
            names = ", ".join(wanted)
            self._make(f"BIOS attributes {names}", control.settings, control.bodies(wanted), wanted, deadline)
            control = self._look(deadline)
        if control.jobs and not control.brings(wanted):
            body = {"TargetSettingsURI": control.settings}
            look = self._looking(wanted, lambda found: found.brings(wanted))
            change = Change("a job for the BIOS attributes", "POST", control.jobs, (body,), look, again=False)
            self._writer.make(change, deadline.within(self._timing.settle))
            control = self._look(deadline)
        return control

    def _make(
        self,
        doing: str,
        path: str,
        bodies: tuple[Mapping[str, object], ...],
        wanted: Mapping[str, Value],
        deadline: Deadline,
    ) -> None:
        look = self._looking(wanted, lambda found: found.pends(wanted))
        change = Change(doing, "PATCH", path, bodies, look, seconds=self._timing.settle, looks=_LOOKS, remedy=_REMEDY)
        self._writer.make(change, deadline)

    def _look(self, deadline: Deadline) -> BiosControl:
        return self._session.walk(read_bios, deadline)[0]

    def _looking(self, wanted: Mapping[str, Value], seen: Seen) -> Callable[[Deadline], Sight]:
        def look(deadline: Deadline) -> Sight:
            found = self._look(deadline)
            waits = {name: found.bios.pending.get(name, found.bios.current.get(name)) for name in wanted}
            words = "the next boot brings " + ", ".join(f"{name} {value}" for name, value in waits.items())
            return Sight(found.serial, seen(found), words, found.etag or self._session.etag(found.settings))

        return look
