"""The event logs that can be cleared, each with all that stands in it (DMTF LogService, action `ClearLog`)."""

from __future__ import annotations

from dataclasses import dataclass

from clusterctl.fleet.errors import EdgeError, ParseError
from clusterctl.fleet.log_archive import LogArchive
from clusterctl.fleet.node import Serial
from clusterctl.formats.redfish import system
from clusterctl.formats.redfish.tree import Answers, NotYetReadError, Resource, Tree, Wanted, normal

_CLEAR = "#LogService.ClearLog"
_EVENT_LOGS = frozenset({"sel", "log1", "iml", "eventlog", "faultlog"})
"""Hardware's. Audit logs, Dell's Lifecycle log and HPE's logs of security and of the BMC itself are none."""
_MAX_PAGES = 200


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


def read_event_logs(answers: Answers) -> EventLogs | Wanted:
    """The System's, else those of its managers (Dell). Raises `ParseError` or `EdgeError` where one of them could not
    be read to its end, and where none can be cleared.
    """
    tree = Tree(answers)
    try:
        host = system.host_system(tree)
        serial = system.serial_of(tree, host)
        services = _services(tree, (host,)) or _services(tree, tree.all(host.links("Links", "ManagedBy")))
        logs = tuple(EventLog(one.path, _target(one), _entries(tree, one)) for one in services)
    except NotYetReadError:
        return Wanted(tuple(tree.wanted))
    if not logs:
        remedy = "clear it by hand at the BMC"
        raise EdgeError("the BMC has no event log that can be cleared", where=host.where("LogServices"), remedy=remedy)
    return EventLogs(serial, logs)


def _services(tree: Tree, holders: tuple[Resource, ...]) -> list[Resource]:
    listed = tree.gather((one for one in holders if one.has("LogServices")), "LogServices", only=_is_event_log)
    return [service for services in listed for service in services if service.has("Actions", _CLEAR)]


def _is_event_log(path: str) -> bool:
    return path.rsplit("/", 1)[-1].lower() in _EVENT_LOGS


def _target(service: Resource) -> str:
    told = service.text("Actions", _CLEAR, "target") or f"{service.path}/Actions/LogService.ClearLog"
    return normal(told, service.where("Actions", _CLEAR, "target"))


def _entries(tree: Tree, service: Resource) -> frozenset[str]:
    """All of them, page by page, and as many as the log counts: what is not read is not archived."""
    first = page = tree.follow(service, "Entries")
    found: list[str] = []
    for _ in range(_MAX_PAGES):
        members = page.each("Members")
        bare = [path for item in members if set(item.body) == {"@odata.id"} and (path := item.link())]
        found += [_words(item) for item in (tree.all(bare) if bare else members)]
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


def _words(item: Resource) -> str:
    told = (item.text("Id") or item.path, item.text("Created"), item.text("MessageId"), item.text("Message"))
    return " ".join(told)
