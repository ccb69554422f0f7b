"""Sets BIOS attributes for the next boot, and verifies that they are pending."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from clusterctl.edges.redfish.session import RedfishSession
from clusterctl.edges.redfish.timing import Timing
from clusterctl.edges.redfish.write import Read, RedfishChange, Writer, WriteReading
from clusterctl.fleet.bmc.logs import LogArchive
from clusterctl.fleet.errors import EdgeError
from clusterctl.fleet.node import Serial
from clusterctl.fleet.settings.baseline import Value
from clusterctl.formats.redfish.bios import BiosControl, read_bios
from clusterctl.formats.redfish.logs import EventLog, EventLogs, read_event_logs
from clusterctl.formats.redfish.tree import Answers
from clusterctl.ports import Deadline

_READINGS = 2
"""As with a boot override, some BMCs revert what they accepted."""
_REMEDY = "look at the BIOS by hand: another setting or a pending job may prevent it (Dell: clear the job queue)"


class BiosSettings:
    """BIOS attributes of machine `serial` through one session. `steps` records requests and readings."""

    def __init__(self, session: RedfishSession, timing: Timing, serial: Serial) -> None:
        self._session = session
        self._timing = timing
        self._writer = Writer(session, timing, serial)

    @property
    def steps(self) -> list[str]:
        """Requests and readings, for the evidence."""
        return self._writer.steps

    def prepare(self, wanted: Mapping[str, Value], deadline: Deadline) -> BiosControl:
        """Make these attributes pending for the next boot, at Dell with the job that applies them; verify both."""
        control = self._read(deadline)
        if not control.pends(wanted):
            change = RedfishChange(
                f"BIOS attributes {', '.join(wanted)}",
                "PATCH",
                control.settings,
                control.bodies(wanted),
                self._reading(wanted, lambda found: found.pends(wanted)),
                seconds=self._timing.settle,
                readings=_READINGS,
                remedy=_REMEDY,
            )
            self._writer.make(change, deadline)
            control = self._read(deadline)
        if control.jobs and not control.brings(wanted):
            body = {"TargetSettingsURI": control.settings}
            read = self._reading(wanted, lambda found: found.brings(wanted))
            change = RedfishChange("a job for the BIOS attributes", "POST", control.jobs, (body,), read, again=False)
            self._writer.make(change, deadline.within(self._timing.settle))
            control = self._read(deadline)
        return control

    def _read(self, deadline: Deadline) -> BiosControl:
        return self._session.walk(read_bios, deadline)[0]

    def _reading(self, wanted: Mapping[str, Value], done: Callable[[BiosControl], bool]) -> Read:
        def read(deadline: Deadline) -> WriteReading:
            found = self._read(deadline)
            pending = {name: found.bios.pending.get(name, found.bios.current.get(name)) for name in wanted}
            text = "the next boot brings " + ", ".join(f"{name} {value}" for name, value in pending.items())
            return WriteReading(found.serial, done(found), text, found.etag or self._session.etag(found.settings))

        return read


class LogClearer:
    """The event logs of one machine through one session. `steps` records requests and readings."""

    def __init__(self, session: RedfishSession, timing: Timing) -> None:
        self._session = session
        self._timing = timing
        self.steps: list[str] = []

    def read(self, deadline: Deadline) -> tuple[EventLogs, Answers]:
        """Return all entries, and the answers that contain them."""
        return self._session.walk(read_event_logs, deadline)

    def clear(self, archive: LogArchive, deadline: Deadline) -> None:
        """Clear the logs. Raises before anything is cleared where a log has entries that `archive` lacks."""
        writer = Writer(self._session, self._timing, archive.serial)
        self.steps = writer.steps
        logs, _ = self.read(deadline)
        changes = [self._change(log, archive) for log in logs.logs]
        for change in changes:
            writer.read(change.read, deadline)
        for change in changes:
            writer.make(change, deadline)

    def _change(self, log: EventLog, archive: LogArchive) -> RedfishChange:
        def read(within: Deadline) -> WriteReading:
            logs, _ = self.read(within)
            now = next((one.entries for one in logs.logs if one.path == log.path), frozenset())
            kept = archive.entries.get(log.path, frozenset())
            cleared = not (now & kept)
            if now - kept and not (cleared and kept):
                remedy = "run it again: it keeps the new entries first"
                raise EdgeError(
                    "the log has entries that were not kept: it was not cleared", where=log.path, remedy=remedy
                )
            return WriteReading(logs.serial, cleared, str(logs))

        return RedfishChange(f"clear {log.path}", "POST", log.target, ({},), read, seconds=self._timing.settle)
