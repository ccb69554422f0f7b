"""The web page as an ASGI application: it reads, and changes nothing.

The address that the service prints holds a token. Opening it sets a cookie, and without one nothing is shown: other
users of the controller can reach its loopback addresses, too. `Host` must be one of a loopback address, so that no
foreign page can read it through a name that resolves to 127.0.0.1.
"""

from __future__ import annotations

import asyncio
import hmac
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from importlib.resources import files
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.middleware import Middleware
from starlette.middleware.base import BaseHTTPMiddleware
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.requests import Request
from starlette.responses import HTMLResponse, PlainTextResponse, RedirectResponse, Response, StreamingResponse
from starlette.routing import Route

from clusterctl.fleet.errors import ClusterctlError, UsageError
from clusterctl.fleet.event import Stream
from clusterctl.fleet.finding import Digest, Verdict
from clusterctl.fleet.peer_text import visible
from clusterctl.operations.explanation import explain
from clusterctl.operations.metrics import export
from clusterctl.operations.operation import current_time
from clusterctl_web.live_fleet import POLL_S, LiveFleet

COOKIE = "clusterctl"
HOSTS = ("localhost", "127.0.0.1", "[::1]")
KEEP_ALIVE_S = 20.0
MOST_EVENTS = 200
"""Events of a node's time line; the page has the number of older ones."""
HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; base-uri 'none'; "
        "form-action 'self'; frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
}
TYPES = {"css": "text/css", "js": "text/javascript"}


def application(fleet: LiveFleet, token: str) -> Starlette:
    """Return the application of one site. `token` is the secret of the printed address."""
    page = _Page(fleet)
    routes = [
        Route("/", page.fleet),
        Route("/changes", page.changes),
        Route("/nodes/{name}", page.node),
        Route("/nodes/{name}/evidence/{digest}", page.evidence),
        Route("/metrics", page.metrics),
        Route("/static/{name}", page.static),
    ]
    return Starlette(
        routes=routes,
        middleware=[
            Middleware(TrustedHostMiddleware, allowed_hosts=list(HOSTS), www_redirect=False),
            Middleware(_Guard, token=token),
        ],
        exception_handlers={ClusterctlError: page.problem},
    )


class _Guard(BaseHTTPMiddleware):
    """Demands the token: in the address once, then as a cookie, or as a bearer token. Adds headers to all answers."""

    def __init__(self, app: Any, token: str) -> None:
        super().__init__(app)
        self._token = token.encode()

    async def dispatch(self, request: Request, call_next: Callable[[Request], Awaitable[Response]]) -> Response:
        response = await self._answer(request, call_next)
        response.headers.update(HEADERS)
        return response

    async def _answer(self, request: Request, call_next: Callable[[Request], Awaitable[Response]]) -> Response:
        given = request.query_params.get("token")
        if given is not None and self._right(given):
            entered = RedirectResponse(request.url.path, status_code=303)
            entered.set_cookie(COOKIE, given, httponly=True, samesite="strict")
            return entered
        bearer = request.headers.get("authorization", "").removeprefix("Bearer ")
        if self._right(request.cookies.get(COOKIE, "")) or self._right(bearer):
            return await call_next(request)
        text = "Open the address that clusterctl web has printed: it holds the token of this page.\n"
        return PlainTextResponse(text, status_code=403)

    def _right(self, given: str) -> bool:
        return hmac.compare_digest(given.encode(), self._token)


@dataclass(frozen=True, slots=True)
class _Page:
    live: LiveFleet

    def _html(self, template: str, status: int = 200, **values: object) -> HTMLResponse:
        settings = self.live.context.site.settings
        about = {"site": settings.name, "simulated": settings.simulated, "now": current_time()}
        return HTMLResponse(TEMPLATES.get_template(template).render(**about, **values), status)

    async def fleet(self, request: Request) -> Response:
        del request
        seq = await run_in_threadpool(self.live.refresh)
        racks = await run_in_threadpool(self.live.racks)
        counts: dict[str, int] = {}
        for rack in racks:
            for tile in rack.tiles:
                counts[tile.mark] = counts.get(tile.mark, 0) + 1
        return self._html("fleet.html.j2", racks=racks, counts=counts, seq=seq)

    async def changes(self, request: Request) -> Response:
        """Send server-sent events: the tiles that have changed since `since`, as they change."""
        since = request.headers.get("last-event-id") or request.query_params.get("since", "0")
        if not since.isdecimal() or len(since) > 18:
            raise UsageError("is no number of an event", where="since", remedy="give the number that the page holds")
        return StreamingResponse(self._events(request, int(since)), media_type="text/event-stream")

    async def _events(self, request: Request, since: int) -> AsyncIterator[str]:
        macro = TEMPLATES.get_template("tile.html.j2").module
        silent = 0.0
        while not await request.is_disconnected():
            last, tiles = await run_in_threadpool(self.live.changed, since)
            if tiles:
                data = {name: str(macro.tile(tile)) for name, tile in tiles.items()}  # type: ignore[attr-defined]
                yield f"id: {last}\ndata: {json.dumps(data)}\n\n"
                silent = 0.0
            elif silent >= KEEP_ALIVE_S:
                yield ": still here\n\n"
                silent = 0.0
            since = last
            await asyncio.sleep(POLL_S)
            silent += POLL_S

    async def node(self, request: Request) -> Response:
        return await run_in_threadpool(self._node, request.path_params["name"])

    def _node(self, name: str) -> Response:
        context = self.live.context
        (state,) = context.states([self._known(name)])
        events = list(context.journal.history(Stream.NODE, state.id))
        order = {verdict: -verdict.rank for verdict in Verdict}
        reports = {
            step: sorted(report.findings, key=lambda finding: order[finding.verdict])
            for step, report in reversed(tuple(state.reports.items()))
        }
        return self._html(
            "node.html.j2",
            node=state,
            why=explain(context, state),
            reports=reports,
            events=events[: -MOST_EVENTS - 1 : -1],
            older=max(0, len(events) - MOST_EVENTS),
        )

    def _known(self, name: str) -> str:
        if name not in {one.name for one in self.live.context.nodes()}:
            raise UsageError(f"there is no node {name!r}", where=name, remedy="the fleet page lists their names")
        return name

    async def evidence(self, request: Request) -> Response:
        """Send one piece of evidence as plain text, without secrets, unprintable characters made visible."""
        return await run_in_threadpool(self._evidence, request.path_params["name"], request.path_params["digest"])

    def _evidence(self, name: str, digest: str) -> Response:
        (state,) = self.live.context.states([self._known(name)])
        belongs = any(digest in finding.evidence for report in state.reports.values() for finding in report.findings)
        item = self.live.context.journal.evidence(Digest(digest)) if belongs else None
        if item is None:
            remedy = "open it from the node's page"
            raise UsageError("the node has no such evidence", where=name, remedy=remedy)
        head = f"{item.source}\nat {item.where}, {item.at:%Y-%m-%d %H:%M:%S} UTC, {item.origin.value}\n\n"
        return PlainTextResponse(visible(head + item.content.decode(errors="replace")))

    async def metrics(self, request: Request) -> Response:
        del request
        text = await run_in_threadpool(lambda: export(self.live.context, self.live.states()))
        return Response(text, media_type="text/plain; version=0.0.4; charset=utf-8")

    async def static(self, request: Request) -> Response:
        name = request.path_params["name"]
        kind = TYPES.get(name.rpartition(".")[2])
        file = files("clusterctl_web") / "static" / name
        if kind is None or "/" in name or not file.is_file():
            return PlainTextResponse("not found\n", 404)
        return Response(file.read_bytes(), media_type=kind)

    async def problem(self, request: Request, error: Exception) -> Response:
        del request
        if not isinstance(error, ClusterctlError):
            raise error
        return self._html("problem.html.j2", 404 if isinstance(error, UsageError) else 503, error=error)


def _stamp(at: Any) -> str:
    return at.strftime("%Y-%m-%d %H:%M:%S") if at else ""


def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("clusterctl_web"),
        autoescape=True,  # what machines report is hostile
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["stamp"] = _stamp
    environment.filters["slug"] = lambda text: str(text).replace(" ", "-")
    return environment


TEMPLATES = _environment()
