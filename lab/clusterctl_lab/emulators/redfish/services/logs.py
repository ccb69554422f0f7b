"""LogService.ClearLog (DMTF LogService schema)."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from clusterctl_lab.emulators.redfish.context import BmcContext, Writes
from clusterctl_lab.emulators.redfish.exchange import Answer, Request, only
from clusterctl_lab.emulators.redfish.profile import Log
from clusterctl_lab.emulators.redfish.traits import Traits
from clusterctl_lab.emulators.redfish.view import LogRecord

LIFECYCLE_CAPACITY = 500


class Logs:
    """The event log is the machine's, the audit log the BMC's own."""

    def __init__(self, context: BmcContext) -> None:
        self._context = context
        self._audit: list[LogRecord] = []
        paths: Mapping[str, Log] = context.profile.paths.clear_log
        self.writes: Writes = {("POST", path): partial(self._clear, log) for path, log in paths.items()}

    @property
    def lifecycle(self) -> tuple[LogRecord, ...]:
        return tuple(self._audit)

    def audit(self, record: LogRecord) -> None:
        """Write into the audit log; the oldest entry goes when it is full."""
        self._audit.append(record)
        del self._audit[:-LIFECYCLE_CAPACITY]

    def _clear(self, log: Log, request: Request, _: Traits) -> Answer:
        only(request.json(), ("LogEntriesETag",))
        if log is Log.SEL:
            self._context.state.sel.clear()
        else:
            self._audit.clear()
        return Answer(204)
