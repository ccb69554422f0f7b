"""Clears a machine's event logs, but only entries that were read and kept before."""

from __future__ import annotations

from clusterctl.edges.redfish.session import Session
from clusterctl.edges.redfish.timing import Timing
from clusterctl.edges.redfish.write import Change, Reading, Writer
from clusterctl.fleet.bmc.logs import LogArchive
from clusterctl.fleet.errors import EdgeError
from clusterctl.formats.redfish.logs import EventLog, EventLogs, read_event_logs
from clusterctl.formats.redfish.tree import Answers
from clusterctl.ports import Deadline


class LogClearer:
    """The event logs of one machine through one session. `steps` records requests and readings."""

    def __init__(self, session: Session, timing: Timing) -> None:
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

    def _change(self, log: EventLog, archive: LogArchive) -> Change:
        def read(within: Deadline) -> Reading:
            logs, _ = self.read(within)
            now = next((one.entries for one in logs.logs if one.path == log.path), frozenset())
            kept = archive.entries.get(log.path, frozenset())
            cleared = not (now & kept)
            if now - kept and not (cleared and kept):
                remedy = "run it again: it keeps the new entries first"
                raise EdgeError(
                    "the log has entries that were not kept: it was not cleared", where=log.path, remedy=remedy
                )
            return Reading(logs.serial, cleared, str(logs))

        return Change(f"clear {log.path}", "POST", log.target, ({},), read, seconds=self._timing.settle)
