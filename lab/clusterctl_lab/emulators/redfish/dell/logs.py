"""System Event Log, Lifecycle Log, fault list; recorded at Managers/iDRAC.Embedded.1/LogServices.

Collections contain whole entries, newest first. The firmware-hang entry follows IPMI 2.0, table 42-3, sensor type 0Fh
(System Firmware Progress), offset 01h.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from clusterctl_lab.emulators.redfish.dell import paths
from clusterctl_lab.emulators.redfish.resource import Resource, collection, counted, head, ref
from clusterctl_lab.emulators.redfish.view import LogRecord, View

_ENTRY = "LogEntry.v1_9_0.LogEntry"
Entry = Callable[[str, LogRecord], Resource]


def resources(view: View) -> Iterator[Resource]:
    services = [paths.SEL, paths.LIFECYCLE_LOG, paths.FAULT_LIST]
    yield collection(f"{paths.MANAGER}/LogServices", "LogServiceCollection", "Log Service Collection", services)
    yield {
        **_service(paths.SEL, "SEL Log Service", "SEL"),
        "Actions": {"#LogService.ClearLog": {"target": f"{paths.SEL}/Actions/LogService.ClearLog"}},
    }
    yield _service(paths.LIFECYCLE_LOG, "LifeCycle Controller Log Service", "OEM")
    yield _service(paths.FAULT_LIST, "FaultList Log Service", "OEM")
    yield from _entries(paths.SEL, view.sel, _sel_entry)
    yield from _entries(paths.LIFECYCLE_LOG, view.lifecycle_log, _lifecycle_entry)
    yield from _entries(paths.FAULT_LIST, (), _lifecycle_entry)


def login(at: str, user: str, client: str) -> LogRecord:
    """Recorded as Lifecycle Log entry 83430."""
    return LogRecord(
        at=at,
        severity="OK",
        message=f"Successfully logged in using {user}, from {client} and REDFISH.",
        message_id="IDRAC.2.7.USR0030",
        args=(user, client, "REDFISH"),
    )


def _service(path: str, name: str, entry_type: str) -> Resource:
    return {
        **head(path, "LogService.v1_2_0.LogService", name),
        "Description": name,
        "Entries": ref(f"{path}/Entries"),
        "LogEntryType": entry_type,
        "OverWritePolicy": "WrapsWhenFull",
        "ServiceEnabled": True,
    }


def _entries(service: str, records: Sequence[LogRecord], entry: Entry) -> Iterator[Resource]:
    path = f"{service}/Entries"
    entries = [entry(f"{path}/{number}", record) for number, record in enumerate(records, start=1)]
    newest_first = entries[::-1]
    yield {
        **collection(path, "LogEntryCollection", "Log Entry Collection", ()),
        **counted("Members", [{k: v for k, v in e.items() if k != "@odata.context"} for e in newest_first]),
    }
    yield from entries


def _sel_entry(path: str, record: LogRecord) -> Resource:
    return {**_common(path, record), "EntryCode": "Assert", "EntryType": "SEL"}


def _lifecycle_entry(path: str, record: LogRecord) -> Resource:
    return {
        **_common(path, record),
        "EntryType": "Oem",
        **counted("MessageArgs", list(record.args)),
        "MessageId": record.message_id,
        "OemRecordFormat": "Dell",
    }


def _common(path: str, record: LogRecord) -> Resource:
    name = f"Log Entry {path.rsplit('/', 1)[-1]}"
    return {
        **head(path, _ENTRY, name),
        "Created": record.at,
        "Description": name,
        "Links": {},
        "Message": record.message,
        "Severity": record.severity,
    }
