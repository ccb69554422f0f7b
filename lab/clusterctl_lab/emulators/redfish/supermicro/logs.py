"""Health event log (the SEL) and maintenance event log; recorded at Systems/1 and Managers/1, both named Log1.

Both collections carry whole entries, oldest first.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from clusterctl_lab.emulators.redfish.resource import Resource, collection, counted, head, ref
from clusterctl_lab.emulators.redfish.supermicro import paths
from clusterctl_lab.emulators.redfish.view import LogRecord, View

CLEAR_HEALTH = f"{paths.HEALTH_LOG}/Actions/LogService.ClearLog"
CLEAR_MAINTENANCE = f"{paths.MAINTENANCE_LOG}/Actions/LogService.ClearLog"
_ENTRY = "LogEntry.v1_7_0.LogEntry"


def resources(view: View) -> Iterator[Resource]:
    yield from _log(
        paths.HEALTH_LOG, "Health", "SEL", CLEAR_HEALTH, [_health_entry(n, r) for n, r in _numbered(view.sel)]
    )
    entries = [_maintenance_entry(n, r) for n, r in _numbered(view.lifecycle_log)]
    yield from _log(paths.MAINTENANCE_LOG, "Maintenance", "OEM", CLEAR_MAINTENANCE, entries)


def login(at: str, user: str, client: str) -> LogRecord:
    """Recorded as maintenance log entry 509."""
    return LogRecord(
        at=at,
        severity="OK",
        message="[MEL-0133] Redfish session was created successfully.",
        message_id="Event.1.0.RedfishSessionCreated",
        args=(user, client),
    )


def _numbered(records: Sequence[LogRecord]) -> Iterator[tuple[int, LogRecord]]:
    return enumerate(records, start=1)


def _log(path: str, name: str, kind: str, clear: str, entries: list[Resource]) -> Iterator[Resource]:
    parent = path.rsplit("/", 1)[0]
    yield collection(parent, "LogServiceCollection", f"Collection of {name} Event Logs", [path])
    yield {
        **head(path, "LogService.v1_2_0.LogService", f"{name} Event Log Service"),
        "OverWritePolicy": "WrapsWhenFull",
        "ServiceEnabled": True,
        "Status": {"State": "Enabled", "Health": "OK"},
        "LogEntryType": kind,
        "Entries": ref(f"{path}/Entries"),
        "Actions": {"#LogService.ClearLog": {"target": clear}},
    }
    yield {
        **collection(f"{path}/Entries", "LogEntryCollection", f"{name} Event Log Service Collection", ()),
        **counted("Members", entries),
    }
    yield from entries


def _health_entry(number: int, record: LogRecord) -> Resource:
    return {
        **head(f"{paths.HEALTH_LOG}/Entries/{number}", _ENTRY, f"Health Event Log Entry {number}"),
        "EntryType": "SEL",
        "Severity": record.severity,
        "Created": record.at,
        "EntryCode": "Assert",
        "Message": record.message,
    }


def _maintenance_entry(number: int, record: LogRecord) -> Resource:
    user, client = (*record.args, "", "")[:2]
    return {
        **head(f"{paths.MAINTENANCE_LOG}/Entries/{number}", _ENTRY, f"Maintenance Event Log Entry {number}"),
        "EntryType": "Oem",
        "Severity": record.severity,
        "Created": record.at,
        "OemRecordFormat": "SMC",
        "Message": record.message,
        "MessageId": record.message_id,
        "Oem": {
            "Supermicro": {
                "@odata.type": "#SmcLogEntryExtensions.v1_0_1.LogEntry",
                "Interface": "Redfish",
                "User": user,
                "Source": client,
                "Category": "Account",
            }
        },
    }
