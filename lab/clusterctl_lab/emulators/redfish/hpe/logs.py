"""Integrated Management Log (the machine's) and iLO Event Log (its own); recorded at Systems/1 IML and Managers/1 IEL.

Both collections contain whole entries, oldest first.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from clusterctl_lab.emulators.redfish.hpe import paths
from clusterctl_lab.emulators.redfish.resource import Resource, collection, counted, head, ref
from clusterctl_lab.emulators.redfish.view import LogRecord, View

CLEAR_IML = f"{paths.IML}/Actions/LogService.ClearLog"
CLEAR_IEL = f"{paths.IEL}/Actions/LogService.ClearLog"
_SEVERITIES = {"OK": "Informational", "Warning": "Caution", "Critical": "Critical"}
"""HPE's own value for each, as recorded in `Oem.Hpe.Severity`."""


def resources(view: View) -> Iterator[Resource]:
    yield from _log(paths.IML, "Integrated Management Log", "Hpe-IML", CLEAR_IML, view.sel)
    yield from _log(paths.IEL, "iLO Event Log", "Hpe-iLOEventLog", CLEAR_IEL, view.lifecycle_log)


def login(at: str, user: str, client: str) -> LogRecord:
    """Recorded as iLO event log entry 1."""
    return LogRecord(at=at, severity="OK", message=f"Browser login: {user} - {client}(DNS name not found).")


def _log(path: str, name: str, form: str, clear: str, records: Sequence[LogRecord]) -> Iterator[Resource]:
    yield collection(path.rsplit("/", 1)[0], "LogServiceCollection", "Logs", [path])
    yield {
        **head(path, "LogService.v1_1_0.LogService", name),
        "Actions": {"#LogService.ClearLog": {"target": clear}},
        "Entries": ref(f"{path}/Entries"),
        "OverWritePolicy": "WrapsWhenFull",
        "ServiceEnabled": True,
        "Status": {"Health": "OK", "State": "Enabled"},
    }
    entries = [_entry(f"{path}/Entries/{n}", name, form, record) for n, record in enumerate(records, start=1)]
    yield {**collection(f"{path}/Entries", "LogEntryCollection", f"{name}s view", ()), **counted("Members", entries)}
    yield from entries


def _entry(path: str, name: str, form: str, record: LogRecord) -> Resource:
    return {
        **head(path, "LogEntry.v1_11_0.LogEntry", name),
        "Created": record.at,
        "EntryType": "Oem",
        "Message": record.message,
        "Oem": {
            "Hpe": {
                "@odata.context": "/redfish/v1/$metadata#HpeLogEntry.HpeLogEntry",
                "@odata.type": "#HpeLogEntry.v2_4_0.HpeLogEntry",
                "Count": 1,
                "Severity": _SEVERITIES[record.severity],
                "Updated": record.at,
            }
        },
        "OemRecordFormat": form,
        "Severity": record.severity,
    }
