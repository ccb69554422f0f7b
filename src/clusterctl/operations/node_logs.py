"""A node's log in a window of time, with what the journal knows of the node in that time.

The log is read in the site's Loki where it has one, else, or where that fails, from the node's journald over SSH. What
could not be read is part of the result. Nothing is recorded.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from clusterctl.edges.clock import CLOCK
from clusterctl.fleet.errors import ClusterctlError, EdgeError, UsageError
from clusterctl.fleet.event import Event, Stream
from clusterctl.fleet.peer_text import visible_line
from clusterctl.fleet.state import NodeState
from clusterctl.formats.node_logs import FIELDS, LogLine, parse_journald
from clusterctl.operations.adapters import Access
from clusterctl.operations.context import SiteContext
from clusterctl.operations.operation import Control
from clusterctl.operations.selection import selected
from clusterctl.ports.deadline import Deadline
from clusterctl.ports.hosts import HostAddress, Shell
from clusterctl.ports.isolation import peer_error
from clusterctl.ports.logs import LogLines, LogStore, LogWindow
from clusterctl.steps.executor.reachability import SshAccess

LOKI, NODE = "loki", "node"
MOST_LINES = 10_000
SECONDS = 120.0
"""For one source."""
_LONGEST = timedelta(days=31)
_TEXT = 200
_SHOWN = 300
_EPOCH = datetime.fromisoformat("1970-01-01T00:00:00+00:00")


@dataclass(frozen=True, slots=True, kw_only=True)
class LogsRequest:
    """`source`: `loki`, `node`, or empty for the site's choice."""

    node: str
    window: LogWindow
    source: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class LogSource:
    """A source that was asked. `problem`: why it could not be read; empty where it was."""

    name: str
    read: LogLines = field(default_factory=LogLines)
    problem: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class LogsResult:
    """Lines and events of the window, each oldest first, and the sources in the order in which they were asked.

    cut_events  older events were left out, since there are more than lines are wanted
    """

    node: str
    window: LogWindow
    lines: tuple[LogLine, ...]
    events: tuple[Event, ...]
    sources: tuple[LogSource, ...]
    cut_events: bool = False

    @property
    def joined(self) -> Iterator[LogLine | Event]:
        """Yield lines and events by time; an event comes before a line of the same moment."""
        both: list[LogLine | Event] = [*self.events, *self.lines]
        yield from sorted(both, key=lambda one: one.at)

    @property
    def exit_code(self) -> int:
        """0: a source was read; 1: none was."""
        return 0 if any(not source.problem for source in self.sources) else 1


def run(context: SiteContext, request: LogsRequest, control: Control, store: LogStore | None = None) -> LogsResult:
    """Read the log of one node. Raises `UsageError` for a wrong request.

    store  the site's Loki by default
    """
    _check(request)
    names = selected(context, (request.node,))
    if len(names) != 1:
        raise UsageError(f"{request.node!r} names {len(names)} nodes", where="NODE", remedy="name one node")
    (node,) = context.states(names)
    events, cut = _events(context, node, request.window)
    sources = tuple(_asked(_readers(context, node, request, control, store), node.name))
    lines = next((source.read.lines for source in sources if not source.problem), ())
    return LogsResult(
        node=node.name, window=request.window, lines=lines, events=events, sources=sources, cut_events=cut
    )


_Reader = tuple[str, Callable[[], LogLines]]


def _check(request: LogsRequest) -> None:
    window = request.window
    if window.since >= window.until:
        raise UsageError("--since is not before --until", where="--since", remedy="give an earlier moment")
    if window.until - window.since > _LONGEST:
        raise UsageError(f"more than {_LONGEST.days} days", where="--since", remedy="ask for a part of that time")
    if len(window.text) > _TEXT or not (window.text.isprintable()):
        remedy = f"give one line of at most {_TEXT} characters"
        raise UsageError("the text cannot be looked for", where="--grep", remedy=remedy)


def _readers(
    context: SiteContext, node: NodeState, request: LogsRequest, control: Control, store: LogStore | None
) -> Iterator[_Reader]:
    """Yield the sources to ask, until one answers."""
    loki = context.site.settings.monitoring.loki
    if store is None and loki is None and request.source == LOKI:
        remedy = "add monitoring: {loki: {url: …}} (docs/how-to/logs.md)"
        raise UsageError("the site has no Loki", where=context.site.where("monitoring"), remedy=remedy)
    deadline = Deadline.after(SECONDS, control.cancelled)
    if (store is not None or loki is not None) and request.source != NODE:
        yield LOKI, lambda: (store or _site_store(context)).read(node.name, request.window, deadline)
    if request.source != LOKI:
        yield NODE, lambda: _read_node(context, node, request.window, Deadline.after(SECONDS, control.cancelled))


def _site_store(context: SiteContext) -> LogStore:
    from clusterctl.operations.channels import log_store

    settings = context.site.settings.monitoring.loki
    if settings is None:
        raise UsageError("the site has no Loki", where=context.site.where("monitoring"))
    return log_store(context.site, settings)


def _asked(readers: Iterable[_Reader], node: str) -> Iterator[LogSource]:
    """Yield the sources up to the first that could be read."""
    for name, read in readers:
        try:
            found = read()
        except Exception as error:  # noqa: BLE001 — peer_error raises what is not the peer's
            yield LogSource(name=name, problem=_problem(peer_error(error, node)))
        else:
            yield LogSource(name=name, read=found)
            return


def _problem(error: ClusterctlError) -> str:
    if isinstance(error, UsageError):
        raise error
    return visible_line(str(error), _SHOWN)


def _read_node(context: SiteContext, node: NodeState, window: LogWindow, deadline: Deadline) -> LogLines:
    ssh = context.site.settings.ssh
    host = SshAccess(ssh.user, context.site.path(ssh.private_key)).address(node)
    if host is None:
        remedy = f"run clusterctl install --limit {node.name}"
        raise EdgeError("its address or host key is unknown", where=node.name, remedy=remedy)
    with closing(context.adapters(Access.READ)) as adapters:
        return read_journald(adapters.shell, host, window, deadline)


def read_journald(shell: Shell, host: HostAddress, window: LogWindow, deadline: Deadline) -> LogLines:
    """Return the newest entries of a host's journald in the window. Raises `EdgeError` where it cannot be read."""
    entries, unreadable = _journalctl(shell, host, _query(window, window.at_most + 1), deadline)
    kept = [one for one in entries if window.since <= one.at <= window.until]
    kept.sort(key=lambda one: one.at)
    before = replace(window, until=window.since, text="")
    earlier, _ = _journalctl(shell, host, _query(before, 1, since=False), deadline)
    return LogLines(
        lines=tuple(kept[-window.at_most :]),
        cut=len(entries) > window.at_most,
        unreadable=unreadable,
        complete=bool(earlier),
    )


def _query(window: LogWindow, at_most: int, *, since: bool = True) -> tuple[str, ...]:
    """Return the command, the newest entry first: with an end, only that order goes back from the end."""
    argv = ["journalctl", "--quiet", "--no-pager", "--output=json", f"--output-fields={FIELDS}", "--reverse"]
    if since:
        argv.append(f"--since=@{math.floor((window.since - _EPOCH).total_seconds())}")
    argv += [f"--until=@{math.ceil((window.until - _EPOCH).total_seconds())}", f"--lines={at_most}"]
    if window.text:
        argv += ["--case-sensitive=false", f"--grep={re.escape(window.text)}"]
    return tuple(argv)


def _journalctl(
    shell: Shell, host: HostAddress, argv: tuple[str, ...], deadline: Deadline
) -> tuple[Sequence[LogLine], int]:
    """Return the entries and how many were not understood. Without a match, some versions end with 1 and no output."""
    sudo = () if host.user == "root" else ("sudo", "-n")
    ran = shell.run(host, (*sudo, *argv), b"", deadline).value
    if ran.exit_status is None:
        raise EdgeError("journalctl took too long", where=host.name, remedy="ask for a shorter time")
    complaint = visible_line(ran.stderr, _SHOWN)
    if ran.exit_status and (complaint or not any(word.startswith("--grep") for word in argv)):
        remedy = "run journalctl on the node"
        raise EdgeError(f"journalctl ended with {ran.exit_status}: {complaint}", where=host.name, remedy=remedy)
    return parse_journald(ran.stdout)


def _events(context: SiteContext, node: NodeState, window: LogWindow) -> tuple[tuple[Event, ...], bool]:
    """Return the newest events of the node in the window, and whether there are more."""
    found = [
        event for event in context.journal.history(Stream.NODE, node.id) if window.since <= event.at <= window.until
    ]
    return tuple(found[-window.at_most :]), len(found) > window.at_most


def default_window(since: datetime | None, until: datetime | None) -> tuple[datetime, datetime]:
    """Return the window's ends: the last hour by default."""
    end = until or CLOCK.now()
    return since or end - timedelta(hours=1), end


def notes(result: LogsResult) -> Iterator[str]:
    """Yield what could not be read, and what is missing, as lines."""
    for source in result.sources:
        name = _name(source, result)
        if source.problem:
            yield f"error: the log could not be read from {name}: {source.problem}"
            continue
        if source.read.cut:
            yield f"{name} has more lines: only the newest {len(result.lines)} are shown; ask for a shorter time"
        if source.read.unreadable:
            yield f"{source.read.unreadable} lines of {name} were not understood, and are missing"
        if source.read.complete is False:
            yield f"the log of {name} has nothing before {_moment(result.window.since)} UTC: older lines may be lost"
        if not result.lines:
            yield f"{name} has no line of {result.node} in this time"
    if result.cut_events:
        yield "there are more events: only the newest are shown; clusterctl nodes NODE prints all"


def _name(source: LogSource, result: LogsResult) -> str:
    return "Loki" if source.name == LOKI else f"{result.node}'s journald"


def _moment(at: datetime) -> str:
    return at.strftime("%Y-%m-%d %H:%M:%S")
