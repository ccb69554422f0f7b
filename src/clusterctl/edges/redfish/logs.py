"""Clearing a machine's event logs, and nothing that was not read before."""

from __future__ import annotations

from clusterctl.edges.redfish.session import Session, Timing
from clusterctl.edges.redfish.write import Change, Sight, Writer
from clusterctl.fleet.errors import EdgeError
from clusterctl.fleet.log_archive import LogArchive
from clusterctl.formats.redfish.logs import EventLog, EventLogs, read_event_logs
from clusterctl.formats.redfish.tree import Answers
from clusterctl.ports import Deadline


class LogClearer:
    """The event logs of one machine through one session. `steps` records what was asked and seen."""

    def __init__(self, session: Session, timing: Timing) -> None:
        self._session = session
        self._timing = timing
        self.steps: list[str] = []

    def read(self, deadline: Deadline) -> tuple[EventLogs, Answers]:
        """All that stands in them, and the answers that say so."""
        return self._session.walk(read_event_logs, deadline)

    def clear(self, archive: LogArchive, deadline: Deadline) -> None:
        """Empty of what `archive` has; raises before anything is cleared where a log has what the archive has not."""
        writer = Writer(self._session, self._timing, archive.serial)
        self.steps = writer.steps
        logs, _ = self.read(deadline)
        changes = [self._change(log, archive) for log in logs.logs]
        for change in changes:
            writer.look(change.look, deadline)
        for change in changes:
            writer.make(change, deadline)

    def _change(self, log: EventLog, archive: LogArchive) -> Change:
        def look(within: Deadline) -> Sight:
            logs, _ = self.read(within)
            now = next((one.entries for one in logs.logs if one.path == log.path), frozenset())
            kept = archive.entries.get(log.path, frozenset())
            cleared = not (now & kept)
            if now - kept and not (cleared and kept):
                remedy = "ask again: what is new is kept then too"
                raise EdgeError(
                    "the log has entries that were not kept: it was not cleared", where=log.path, remedy=remedy
                )
            return Sight(logs.serial, cleared, str(logs))

        return Change(f"clear {log.path}", "POST", log.target, ({},), look, seconds=self._timing.settle)
