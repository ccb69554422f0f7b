"""The pages: the fleet with its live changes, and a node with its evidence."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from importlib.resources import files

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response, StreamingResponse
from starlette.routing import Route

from clusterctl.fleet.errors import UsageError
from clusterctl.fleet.finding import Digest, Verdict
from clusterctl.fleet.hardware.parts import fitted
from clusterctl.fleet.peer_text import visible
from clusterctl.operations.metrics import FleetMetrics
from clusterctl_web.actions import NODES
from clusterctl_web.api import json_response
from clusterctl_web.change_feed import ChangeFeed
from clusterctl_web.guard import actor_of
from clusterctl_web.live_fleet import POLL_S, LiveFleet
from clusterctl_web.node_view import NodeViews
from clusterctl_web.rate_limit import StreamLimit
from clusterctl_web.rendering import RacksHtml, Renderer
from clusterctl_web.search import found_nodes, words_of
from clusterctl_web.sessions import UserSessions

KEEP_ALIVE_S = 20.0
MOST_EVENTS = 200
"""Events of a node's time line; the page has the number of older ones."""
TYPES = {"css": "text/css", "js": "text/javascript", "svg": "image/svg+xml"}
BUSY = "you have too many open pages: close some\n"


@dataclass(frozen=True, slots=True)
class Pages:
    """The pages that only read."""

    live: LiveFleet
    renderer: Renderer
    sessions: UserSessions
    streams: StreamLimit
    figures: FleetMetrics
    views: NodeViews
    feed: ChangeFeed
    racks: RacksHtml = field(default_factory=RacksHtml)

    def routes(self) -> list[Route]:
        return [
            Route("/", self.fleet),
            Route("/changes", self.changes),
            Route("/search", self.search),
            Route("/nodes/{name}", self.node),
            Route("/nodes/{name}/evidence/{digest}", self.evidence),
            Route("/metrics", self.metrics),
            Route("/static/{name}", self.static),
        ]

    async def fleet(self, request: Request) -> Response:
        return await run_in_threadpool(self._fleet, request)

    def _fleet(self, request: Request) -> Response:
        seq = self.live.refresh()
        racks, counts = self.racks.of(self.live.racks())
        return self.renderer.html(request, "fleet.html.j2", racks=racks, counts=counts, seq=seq)

    async def search(self, request: Request) -> Response:
        """Return the names of the nodes that have each word of `q` in their tile or in one of their parts."""
        words = words_of(request.query_params.get("q", ""))
        found = await run_in_threadpool(found_nodes, self.live, self.figures, words)
        return json_response({"nodes": [visible(name) for name in found]})

    async def changes(self, request: Request) -> Response:
        """Send server-sent events: the tiles that have changed since `since`, as they change."""
        since = request.headers.get("last-event-id") or request.query_params.get("since", "0")
        if not since.isdecimal() or len(since) > 18:
            raise UsageError("is no number of an event", where="since", remedy="give the number that the page holds")
        user = actor_of(request).name
        if not self.streams.take(user):
            return PlainTextResponse(BUSY, 429, {"Retry-After": "30"})
        return StreamingResponse(self._events(self.validity(request), user, int(since)), media_type="text/event-stream")

    def validity(self, request: Request) -> Callable[[], bool]:
        """Return the test whether the session or token of the request is still valid."""
        kind, _, secret = request.headers.get("authorization", "").partition(" ")
        if kind.lower() == "bearer":
            return lambda: self.sessions.bearer(secret.strip()) is not None
        cookie = request.cookies.get(self.sessions.access.session_cookie, "")
        return lambda: self.sessions.find(cookie, used=False) is not None

    async def _events(self, valid: Callable[[], bool], user: str, since: int) -> AsyncIterator[str]:
        silent = 0.0
        with self.streams.held(user):
            while valid():
                since, text = await self.feed.after(since)
                if text or silent >= KEEP_ALIVE_S:
                    yield text or ": still here\n\n"
                    silent = 0.0
                await asyncio.sleep(POLL_S)
                silent += POLL_S

    async def node(self, request: Request) -> Response:
        return await run_in_threadpool(self._node, request, request.path_params["name"])

    def _node(self, request: Request, name: str) -> Response:
        view = self.views.of(name)
        state, events = view.state, view.events
        order = {verdict: -verdict.rank for verdict in Verdict}
        reports = {
            step: sorted(report.findings, key=lambda finding: order[finding.verdict])
            for step, report in reversed(tuple(state.reports.items()))
        }
        return self.renderer.html(
            request,
            "node.html.j2",
            node=state,
            why=view,
            actions=NODES.offered(actor_of(request)),
            reports=reports,
            parts=list(fitted(state)),
            orders=view.orders,
            events=events[: -MOST_EVENTS - 1 : -1],
            older=max(0, len(events) - MOST_EVENTS),
        )

    async def evidence(self, request: Request) -> Response:
        """Send one piece of evidence as plain text, without secrets, unprintable characters made visible."""
        return await run_in_threadpool(self._evidence, request.path_params["name"], request.path_params["digest"])

    def _evidence(self, name: str, digest: str) -> Response:
        item = self.live.evidence(name, Digest(digest))
        head = f"{item.source}\nat {item.where}, {item.at:%Y-%m-%d %H:%M:%S} UTC, {item.origin.value}\n\n"
        return PlainTextResponse(visible(head + item.content.decode(errors="replace")))

    async def metrics(self, request: Request) -> Response:
        del request
        text = await run_in_threadpool(self.figures.export)
        return Response(text, media_type="text/plain; version=0.0.4; charset=utf-8")

    async def static(self, request: Request) -> Response:
        name = request.path_params["name"]
        kind = TYPES.get(name.rpartition(".")[2])
        file = files("clusterctl_web") / "static" / name
        if kind is None or "/" in name or not file.is_file():
            return PlainTextResponse("not found\n", 404)
        return Response(file.read_bytes(), media_type=kind)
