"""The SEL and the audit log; recorded at Managers/BMC/LogServices, with whole entries, oldest first."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from clusterctl_lab.emulators.redfish.openbmc import paths
from clusterctl_lab.emulators.redfish.resource import Resource, collection, counted, head, ref
from clusterctl_lab.emulators.redfish.view import LogRecord, View

CLEAR_SEL = f"{paths.SEL}/Actions/LogService.ClearLog"
CLEAR_AUDIT = f"{paths.AUDIT_LOG}/Actions/LogService.ClearLog"


def resources(view: View) -> Iterator[Resource]:
    services = [paths.AUDIT_LOG, paths.SEL]
    yield collection(f"{paths.MANAGER}/LogServices", "LogServiceCollection", "Log Service Collection", services)
    yield from _log(paths.SEL, "IPMI SEL", "SEL", CLEAR_SEL, view.sel)
    yield from _log(paths.AUDIT_LOG, "Audit Log", "Event", CLEAR_AUDIT, view.lifecycle_log)


def login(at: str, user: str, client: str) -> LogRecord:
    """The wording is ours; that the audit log has logins is NVIDIA's user guide's."""
    return LogRecord(at=at, severity="OK", message=f"Login Success from IP: {client} user: {user} via REDFISH")


def _log(path: str, name: str, kind: str, clear: str, records: Sequence[LogRecord]) -> Iterator[Resource]:
    yield {
        **head(path, "LogService.v1_2_0.LogService", name),
        "Actions": {"#LogService.ClearLog": {"target": clear}},
        "Entries": ref(f"{path}/Entries"),
        "LogEntryType": kind,
        "OverWritePolicy": "WrapsWhenFull",
        "ServiceEnabled": True,
        "Status": {"Health": "OK", "State": "Enabled"},
    }
    entries = [_entry(f"{path}/Entries/{n}", kind, record) for n, record in enumerate(records, start=1)]
    yield {
        **collection(f"{path}/Entries", "LogEntryCollection", "Log Service Entries Collection", ()),
        **counted("Members", entries),
    }
    yield from entries


def _entry(path: str, kind: str, record: LogRecord) -> Resource:
    name = f"{kind} {path.rsplit('/', 1)[-1]}"
    return {
        **head(path, "LogEntry.v1_7_0.LogEntry", name),
        "Created": record.at,
        "Description": name,
        "EntryType": kind,
        "EventTimestamp": record.at,
        "Links": {"OriginOfCondition": ref(paths.MANAGER)},
        "Message": record.message,
        "Severity": record.severity,
    }
