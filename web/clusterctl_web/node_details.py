"""What a node's page has on demand: log, BMC log, figures against the fleet's, the history of a part."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from clusterctl.fleet.access import UserRole
from clusterctl.fleet.durations import parse_past
from clusterctl.fleet.errors import EdgeError, PrivilegeError, UsageError
from clusterctl.fleet.event import Event, Stream
from clusterctl.fleet.peer_text import visible_line
from clusterctl.fleet.reporting.rma import Rma
from clusterctl.formats.node_logs import LogLine
from clusterctl.operations import bmc_log, node_logs
from clusterctl.operations.context import SiteContext
from clusterctl.operations.metrics import FleetMetrics
from clusterctl.operations.node_figures import BINS, figure_places
from clusterctl.operations.operation import Control, current_time
from clusterctl.operations.rma import known_rmas
from clusterctl.ports.logs import LogWindow
from clusterctl_web.guard import actor_of
from clusterctl_web.live_fleet import LiveFleet
from clusterctl_web.rendering import Renderer, stamp

TIMES = {"15min": "15 minutes", "1h": "hour", "4h": "4 hours", "1d": "day", "7d": "7 days"}
"""How far back the log is read, as the page offers it."""
MOST_LINES = 1000
MOST_EVENTS = 500
READS = 3
"""Logs that are read at the same time: each waits for a machine, and takes a thread of the service meanwhile."""
_MESSAGE = 500
_BAD = frozenset({"emerg", "alert", "crit", "critical", "err", "error"})


@dataclass(frozen=True, slots=True)
class LogRow:
    """One line of the page. `source`: `log`, or `event` for what clusterctl recorded; `bad`: a level of errors."""

    at: str
    source: str
    text: str
    bad: bool = False


@dataclass(frozen=True, slots=True)
class MachineReads:
    """Reads from machines, of pages and API together: an operator orders them, and few run at the same time."""

    places: threading.BoundedSemaphore = field(default_factory=lambda: threading.BoundedSemaphore(READS))

    @contextmanager
    def reading(self, request: Request) -> Iterator[None]:
        """Hold one of the places. Raises `PrivilegeError`, and `EdgeError` where all are taken."""
        if not actor_of(request).role.includes(UserRole.OPERATOR):
            raise PrivilegeError("logs of machines hold texts of users: operators read them", where=request.url.path)
        if not self.places.acquire(blocking=False):
            raise EdgeError(f"{READS} logs are read already", where=request.url.path, remedy="wait a minute")
        try:
            yield
        finally:
            self.places.release()


def logs_request(request: Request, node: str) -> node_logs.LogsRequest:
    """Return the question of a request: `since`, as the page offers it, and `grep`. Raises `UsageError`."""
    since, text = request.query_params.get("since", "1h"), request.query_params.get("grep", "").strip()
    if since not in TIMES:
        raise UsageError("is no time that the page offers", where="since", remedy=f"one of {', '.join(TIMES)}")
    now = current_time()
    window = LogWindow(since=parse_past(since, now, where="since"), until=now, text=text, at_most=MOST_LINES)
    return node_logs.LogsRequest(node=node, window=window)


def known_part(context: SiteContext, serial: str) -> tuple[list[Event], list[Rma]]:
    """Return the events of a part and its returns, the oldest first. Raises `UsageError` for an unknown serial."""
    events = list(context.journal.history(Stream.PART, serial))
    if not events:
        raise UsageError("the journal knows no part of this serial", where=serial, remedy="see the node's parts")
    return events, [one for one in known_rmas(context) if one.serial == serial]


@dataclass(frozen=True, slots=True)
class NodeDetails:
    """Pages below a node's. They read; what is read of machines is for operators, as texts of users' jobs are in it."""

    live: LiveFleet
    renderer: Renderer
    figures: FleetMetrics
    reads: MachineReads

    def routes(self) -> list[Route]:
        return [
            Route("/nodes/{name}/logs", self.logs),
            Route("/nodes/{name}/bmc-log", self.bmc_log),
            Route("/nodes/{name}/figures", self.fleet),
            Route("/parts/{serial:path}", self.part),
        ]

    async def logs(self, request: Request) -> Response:
        """Show the log of the node, joined with its events, of the last `since`, with `grep` in its lines."""
        return await run_in_threadpool(self._logs, request, request.path_params["name"])

    def _logs(self, request: Request, name: str) -> Response:
        asked = logs_request(request, self.live.node(name).name)
        with self.reads.reading(request):
            found = node_logs.run(self.live.context, asked, Control())
        return self.renderer.html(
            request,
            "node_logs.html.j2",
            name=name,
            rows=[_row(one) for one in found.joined],
            notes=list(node_logs.notes(found)),
            times=TIMES,
            since=request.query_params.get("since", "1h"),
            grep=asked.window.text,
        )

    async def bmc_log(self, request: Request) -> Response:
        return await run_in_threadpool(self._bmc_log, request, request.path_params["name"])

    def _bmc_log(self, request: Request, name: str) -> Response:
        node = self.live.node(name)
        with self.reads.reading(request):
            found = bmc_log.read(self.live.context, node.name, Control())
        rows = [
            LogRow(
                entry.at, entry.severity, visible_line(entry.message, _MESSAGE), entry.severity.lower() == "critical"
            )
            for entry in found.entries
        ]
        return self.renderer.html(request, "bmc_log.html.j2", name=name, rows=rows, older=found.older)

    async def fleet(self, request: Request) -> Response:
        """Show each figure of the node among those of its SKU's nodes."""
        return await run_in_threadpool(self._fleet, request, request.path_params["name"])

    def _fleet(self, request: Request, name: str) -> Response:
        node = self.live.node(name)
        places = figure_places(node.name, self.figures.figures())
        return self.renderer.html(request, "node_figures.html.j2", node=node, places=places, bins=BINS)

    async def part(self, request: Request) -> Response:
        return await run_in_threadpool(self._part, request, request.path_params["serial"])

    def _part(self, request: Request, serial: str) -> Response:
        """Show what the journal knows of a part, whichever nodes it was in, and its returns."""
        events, returned = known_part(self.live.context, serial)
        return self.renderer.html(
            request,
            "part.html.j2",
            serial=serial,
            events=events[: -MOST_EVENTS - 1 : -1],
            older=max(0, len(events) - MOST_EVENTS),
            rmas=returned,
        )


def _row(one: LogLine | Event) -> LogRow:
    if isinstance(one, Event):
        return LogRow(stamp(one.at), "event", f"{one.kind.value}: {one.payload}")
    level = f"{one.level} " if one.level in _BAD else ""
    return LogRow(stamp(one.at), "log", f"{level}{one.unit}: {one.text}", bool(level))
