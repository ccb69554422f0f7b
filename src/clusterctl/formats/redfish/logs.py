"""The hardware's event logs: SEL, Dell's Lifecycle log and fault list, Supermicro's Log1, HPE's IML, HGX's XIDs."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial

from clusterctl.fleet.bmc.logs import UNREAD, LogArchive, LogEntry
from clusterctl.fleet.errors import EdgeError, ParseError
from clusterctl.fleet.natural_order import natural_key
from clusterctl.fleet.node import Serial, Unread
from clusterctl.formats.redfish import system
from clusterctl.formats.redfish.machine import serial_of
from clusterctl.formats.redfish.system import chassis, systems
from clusterctl.formats.redfish.tree import Answers, NotYetReadError, ReadRequest, RedfishTree, Resource, normal

NEWEST = 200
"""Entries of each log that are reported at most."""
_TRACES = re.compile(
    r"(audit|diagnostic|security|journal|postcode|dump|crashdump|faultdump|debugtoken|fdr|telemetry)\w*|sl",
    re.IGNORECASE,
)
"""Logs of logins, of the BMC's software and of memory dumps: of these one page is read, and critical entries count."""
_SEVERITIES = ("OK", "Warning", "Critical")
_LONG_AGO = datetime.min.replace(tzinfo=UTC)
_MAX_PAGES = 40


def read_logs(answers: Answers) -> tuple[LogEntry, ...] | ReadRequest:
    """Return the newest entries of each log, newest first.

    A log of which something could not be read stands there as an entry of its own, as does a BMC that lists none:
    whatever a log is like, the others are read.
    """
    tree = RedfishTree(answers)
    try:
        services = _services(tree)
    except NotYetReadError:
        return ReadRequest(tuple(tree.wanted))
    found: list[LogEntry] = []
    for service in services:
        tree.kind = service.path
        try:
            found += tree.attempt(partial(_entries, tree, service)) or ()
        except NotYetReadError:
            continue
    if tree.wanted:
        return ReadRequest(tuple(tree.wanted))
    unread = _unread(tree) if services or tree.unread else [LogEntry("", "", "the BMC lists no log", message_id=UNREAD)]
    return (*unread, *sorted(found, key=_newest, reverse=True))


def _services(tree: RedfishTree) -> tuple[Resource, ...]:
    """Return every log service of every System, manager and chassis, whatever its name."""
    managers = tree.attempt(partial(tree.members, tree.root, "Managers", whole=False)) or ()
    holders = (*systems(tree), *managers, *(tree.attempt(partial(chassis, tree)) or ()))
    listed = tree.readable_members((one for one in holders if one.has("LogServices")), "LogServices")
    found = {item.path: item for items in listed for item in items}
    return tuple(one for one in found.values() if one.has("Entries") or _is_event_log(one.path))


def _unread(tree: RedfishTree) -> list[LogEntry]:
    """Return an entry for each log of which something could not be read."""
    lost: dict[str, list[Unread]] = {}
    for one in tree.unread.values():
        lost.setdefault(one.kind or one.where, []).append(one)
    return [
        LogEntry("", "", f"{items[0]}" + (f" and {len(items) - 1} more" if items[1:] else ""), UNREAD, log=log)
        for log, items in lost.items()
    ]


def _entries(tree: RedfishTree, service: Resource) -> list[LogEntry]:
    """Return the newest of one log. Logs that begin with the oldest entry are read to their end, at most 40 pages."""
    trace = _TRACES.fullmatch(service.id) is not None
    items = _newest_items(tree, service, 1 if trace else _MAX_PAGES)
    read = [entry for item in items if (entry := tree.attempt(partial(_entry, item, service))) is not None]
    found = [entry for entry in read if not trace or entry.severity == "Critical"]
    return sorted(found, key=_newest, reverse=True)[:NEWEST]


def _newest_items(tree: RedfishTree, service: Resource, pages: int) -> list[Resource]:
    page: Resource | None = tree.follow(service, "Entries")
    items: list[Resource] = []
    for _ in range(pages):
        if page is None:
            break
        members = page.each("Members")
        bare = [path for item in members if set(item.body) == {"@odata.id"} and (path := item.link())]
        items += tree.readable(sorted(bare, key=natural_key)[-NEWEST:]) if bare else members
        following = page.text("Members@odata.nextLink")
        if not following or (len(items) >= NEWEST and _newest_first(items)):
            break
        page = tree.attempt(partial(tree.get, normal(following, page.where("Members@odata.nextLink"))))
    return items


def _newest_first(items: list[Resource]) -> bool:
    first, last = (item.value("Created") for item in (items[0], items[-1]))
    return _when(str(first)) >= _when(str(last))


def _entry(item: Resource, service: Resource) -> LogEntry:
    severity = item.term("Severity") or item.term("MessageSeverity")
    return LogEntry(
        at=item.text("Created") or item.text("EventTimestamp"),
        severity=severity if severity in _SEVERITIES else "",
        message=item.text("Message") or item.text("MessageId") or item.text("Name"),
        message_id=item.text("MessageId"),
        sensor=item.text("SensorType") or item.text("OemSensorType"),
        origin=_origin(item) or _holder(service),
        log=service.path,
        cleared=_cleared(item),
    )


def _cleared(item: Resource) -> bool:
    """Return whether it is cleared: by IPMI's key, by DMTF's (`Resolved`), or by HPE's."""
    return item.text("EntryCode") == "Deassert" or True in (item.flag("Resolved"), item.flag("Oem", "Hpe", "Repaired"))


def _origin(item: Resource) -> str:
    """Return the last part of the link to the part; an entry without a valid link is kept."""
    link = item.value("Links", "OriginOfCondition")
    path = link.get("@odata.id") if isinstance(link, Mapping) else None
    return path.rstrip("/").rsplit("/", 1)[-1] if isinstance(path, str) else ""


def _holder(service: Resource) -> str:
    """Return the chassis that owns the log: each GPU of an HGX board is one."""
    parts = service.path.split("/")
    return parts[4] if len(parts) > 4 and parts[3] == "Chassis" else ""


def _newest(entry: LogEntry) -> datetime:
    return _when(entry.at)


def _when(text: str) -> datetime:
    """Return the time, for sorting only: what cannot be read as a time counts as oldest."""
    try:
        time = datetime.fromisoformat(text)
    except ValueError:
        return _LONG_AGO
    return time if time.tzinfo else time.replace(tzinfo=UTC)


_CLEAR = "#LogService.ClearLog"
_EVENT_LOGS = frozenset({"sel", "log1", "iml", "eventlog", "faultlog"})
"""Hardware's. Audit logs, Dell's Lifecycle log and HPE's logs of security and of the BMC itself are none."""
_MAX_ARCHIVE_PAGES = 200


@dataclass(frozen=True, slots=True)
class EventLog:
    path: str
    target: str
    entries: frozenset[str]


@dataclass(frozen=True, slots=True)
class EventLogs:
    """Those of one machine."""

    serial: Serial
    logs: tuple[EventLog, ...]

    @property
    def archive(self) -> LogArchive:
        return LogArchive(self.serial, {log.path: log.entries for log in self.logs})

    def __str__(self) -> str:
        return "; ".join(f"{log.path} has {len(log.entries)} entries" for log in self.logs)


def read_event_logs(answers: Answers) -> EventLogs | ReadRequest:
    """Return the System's, else those of its managers (Dell). Raise `ParseError` or `EdgeError` where one of them could
    not be read to its end, and where none can be cleared.
    """
    tree = RedfishTree(answers)
    try:
        host = system.host_system(tree)
        serial = serial_of(tree, host)
        services = _clearable(tree, (host,)) or _clearable(tree, tree.all(host.links("Links", "ManagedBy")))
        logs = tuple(EventLog(one.path, _target(one), _all_entries(tree, one)) for one in services)
    except NotYetReadError:
        return ReadRequest(tuple(tree.wanted))
    if not logs:
        remedy = "clear it by hand at the BMC"
        raise EdgeError("the BMC has no event log that can be cleared", where=host.where("LogServices"), remedy=remedy)
    return EventLogs(serial, logs)


def _clearable(tree: RedfishTree, holders: tuple[Resource, ...]) -> list[Resource]:
    listed = tree.gather((one for one in holders if one.has("LogServices")), "LogServices", only=_is_event_log)
    return [service for services in listed for service in services if service.has("Actions", _CLEAR)]


def _is_event_log(path: str) -> bool:
    return path.rsplit("/", 1)[-1].lower() in _EVENT_LOGS


def _target(service: Resource) -> str:
    target = service.text("Actions", _CLEAR, "target") or f"{service.path}/Actions/LogService.ClearLog"
    return normal(target, service.where("Actions", _CLEAR, "target"))


def _all_entries(tree: RedfishTree, service: Resource) -> frozenset[str]:
    """Return all entries, page by page. Raise ParseError where the log counts more than its pages list."""
    first = page = tree.follow(service, "Entries")
    found: list[str] = []
    for _ in range(_MAX_ARCHIVE_PAGES):
        found += map(_words, _entries_of(tree, page))
        following = page.text("Members@odata.nextLink")
        if not following:
            break
        page = tree.get(normal(following, page.where("Members@odata.nextLink")))
    else:
        raise ParseError("the log's pages never end", where=first.path)
    count = first.whole("Members@odata.count")
    if count is not None and count > len(found):
        raise ParseError(f"the log counts {count} entries but shows {len(found)}", where=first.path)
    return frozenset(found)


def _entries_of(tree: RedfishTree, page: Resource) -> Sequence[Resource]:
    """Return the entries of a page; some BMCs list links only."""
    members = page.each("Members")
    bare = [path for item in members if set(item.body) == {"@odata.id"} and (path := item.link())]
    return tree.all(bare) if bare else members


def _words(item: Resource) -> str:
    fields = (item.text("Id") or item.path, item.text("Created"), item.text("MessageId"), item.text("Message"))
    return " ".join(fields)
