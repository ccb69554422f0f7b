"""The hardware's event logs: SEL, Dell's Lifecycle log and fault list, Supermicro's health log, HPE's IML."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime

from clusterctl.fleet.errors import EdgeError, ParseError
from clusterctl.formats.redfish.system import host_system
from clusterctl.formats.redfish.tree import Answers, NotYetReadError, Resource, Tree, Wanted, normal

NEWEST = 200
_SERVICES = frozenset({"sel", "lclog", "faultlist", "log1", "iml", "eventlog"})
_SEVERITIES = ("OK", "Warning", "Critical")
_LONG_AGO = datetime.min.replace(tzinfo=UTC)
_MAX_PAGES = 40


@dataclass(frozen=True, slots=True)
class Entry:
    """`at` as the BMC wrote it; `severity` OK, Warning, Critical, or empty where the BMC does not say."""

    at: str
    severity: str
    message: str


def read_logs(answers: Answers) -> tuple[Entry, ...] | Wanted:
    """The newest entries of all hardware logs, newest first; raises the last error when not one log could be read."""
    tree = Tree(answers)
    found: list[Entry] = []
    error: ParseError | EdgeError | None = None
    readable = 0
    try:
        services = _services(tree)
    except NotYetReadError:
        return Wanted(tuple(tree.wanted))
    for service in services:
        try:
            found += _entries(tree, service)
            readable += 1
        except NotYetReadError:
            continue
        except (ParseError, EdgeError) as problem:
            error = problem
    if tree.wanted:
        return Wanted(tuple(tree.wanted))
    if error is not None and not readable:
        raise error
    return tuple(sorted(found, key=lambda entry: _when(entry.at), reverse=True)[:NEWEST])


def _services(tree: Tree) -> tuple[Resource, ...]:
    host = host_system(tree)
    managers = tree.all(host.links("Links", "ManagedBy"))
    links = [one.link("LogServices") for one in (host, *managers)]
    listings = tree.all(path for path in links if path)
    paths = [path for listing in listings for path in listing.links("Members")]
    services = tree.all(path for path in paths if path.rsplit("/", 1)[-1].lower() in _SERVICES)
    if not services:
        raise ParseError("no hardware log is listed", where=host.where("LogServices"))
    return services


def _entries(tree: Tree, service: Resource) -> list[Entry]:
    """The newest of one log. Logs that begin with the oldest entry are read to their end, at most 40 pages."""
    page = tree.follow(service, "Entries")
    items: list[Resource] = []
    for _ in range(_MAX_PAGES):
        members = page.each("Members")
        bare = [path for item in members if set(item.body) == {"@odata.id"} and (path := item.link())]
        items += tree.all(bare[:NEWEST]) if bare else members
        following = page.text("Members@odata.nextLink")
        if not following or (len(items) >= NEWEST and _newest_first(items)):
            break
        page = tree.get(normal(following, page.where("Members@odata.nextLink")))
    return [_entry(item) for item in items]


def _newest_first(items: list[Resource]) -> bool:
    return _when(items[0].text("Created")) >= _when(items[-1].text("Created"))


def _entry(item: Resource) -> Entry:
    severity = item.text("Severity")
    return Entry(
        at=item.text("Created") or item.text("EventTimestamp"),
        severity=severity if severity in _SEVERITIES else "",
        message=item.text("Message") or item.text("MessageId") or item.text("Name"),
    )


def _when(text: str) -> datetime:
    """For sorting only: what cannot be read as a time counts as oldest."""
    try:
        told = datetime.fromisoformat(text)
    except ValueError:
        return _LONG_AGO
    return told if told.tzinfo else told.replace(tzinfo=UTC)
