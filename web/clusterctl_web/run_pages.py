"""Detached runs as pages, as a live event stream and as endpoints of the JSON API."""

from __future__ import annotations

import asyncio
import json
import secrets
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import PlainTextResponse, RedirectResponse, Response, StreamingResponse
from starlette.routing import Route

from clusterctl.fleet.access import UserRole
from clusterctl.fleet.peer_text import visible_line
from clusterctl.operations import runs
from clusterctl.operations.context import SiteContext
from clusterctl.operations.runs import RunRecord, RunState
from clusterctl.operations.serial import to_data
from clusterctl_web.action_pages import KEY, done_json, json_body, preview_json
from clusterctl_web.actions import Approval, Orders
from clusterctl_web.api import json_response
from clusterctl_web.guard import actor_of, form_of, needs
from clusterctl_web.live_fleet import POLL_S
from clusterctl_web.openapi import BASE
from clusterctl_web.pages import BUSY, KEEP_ALIVE_S
from clusterctl_web.rate_limit import StreamLimit
from clusterctl_web.rendering import Renderer

LINES = 200
"""Last lines of a log that the page shows."""


@dataclass(frozen=True, slots=True)
class RunPages:
    """The list of detached runs, and each of them."""

    context: SiteContext
    orders: Orders
    renderer: Renderer
    streams: StreamLimit
    validity: Callable[[Request], Callable[[], bool]]

    def routes(self) -> list[Route]:
        return [
            Route("/runs", self.list),
            Route("/runs/{run}", self.show),
            Route("/changes/runs/{run}", self.changes),
            Route("/runs/{run}/cancel", self.cancel, methods=["POST"]),
            Route("/runs/{run}/retry", self.retry, methods=["POST"]),
            Route(f"{BASE}/runs", self.api_list),
            Route(f"{BASE}/runs/{{run}}", self.api_show),
            Route(f"{BASE}/runs/{{run}}/cancel", self.api_cancel, methods=["POST"]),
            Route(f"{BASE}/runs/{{run}}/retry", self.api_retry, methods=["POST"]),
        ]

    async def list(self, request: Request) -> Response:
        found = await run_in_threadpool(runs.read, self.context)
        return self.renderer.html(request, "runs.html.j2", runs=found, state_of=state_text)

    async def show(self, request: Request) -> Response:
        shown = await run_in_threadpool(self._shown, request.path_params["run"])
        return self.renderer.html(request, "run.html.j2", **shown)

    def _shown(self, name: str) -> dict[str, Any]:
        record = runs.find(self.context, name)
        return {
            "run": record,
            "state": state_text(record),
            "given": given_text(record),
            "nodes": runs.progress(self.context, record),
            "log": log_text(self.context, record),
        }

    async def changes(self, request: Request) -> Response:
        """Send server-sent events: state, progress and log of a run, as they change, until it ends."""
        record = await run_in_threadpool(runs.find, self.context, request.path_params["run"])
        user = actor_of(request).name
        if not self.streams.take(user):
            return PlainTextResponse(BUSY, 429, {"Retry-After": "30"})
        return StreamingResponse(
            self._events(record.name, user, self.validity(request)), media_type="text/event-stream"
        )

    async def _events(self, name: str, user: str, valid: Callable[[], bool]) -> AsyncIterator[str]:
        before, silent, active = "", 0.0, True
        with self.streams.held(user):
            while active and valid():
                active, data = await run_in_threadpool(self._data, name)
                if data != before:
                    yield f"data: {data}\n\n"
                    silent = 0.0
                elif silent >= KEEP_ALIVE_S:
                    yield ": still here\n\n"
                    silent = 0.0
                before = data
                silent += POLL_S
                await asyncio.sleep(POLL_S if active else 0)

    def _data(self, name: str) -> tuple[bool, str]:
        record = runs.find(self.context, name)
        nodes = [
            [visible_line(one.node), f"{one.at:%H:%M:%S}", visible_line(one.text)]
            for one in runs.progress(self.context, record)
        ]
        document = {
            "state": state_text(record),
            "active": record.active,
            "nodes": nodes,
            "log": log_text(self.context, record),
        }
        return record.active, json.dumps(document)

    @needs(UserRole.OPERATOR)
    async def cancel(self, request: Request) -> Response:
        name = request.path_params["run"]
        await run_in_threadpool(self.orders.cancel, actor_of(request), name)
        return RedirectResponse(f"/runs/{quote(name)}", status_code=303)

    @needs(UserRole.OPERATOR)
    async def retry(self, request: Request) -> Response:
        """Show the preview of the run's request; with its digest, order it again."""
        return await run_in_threadpool(self._retry, request)

    def _retry(self, request: Request) -> Response:
        actor, name, form = actor_of(request), request.path_params["run"], form_of(request)
        if form.text("approved"):
            approval = Approval(digest=form.text("approved"), key=form.text("key"))
            done = self.orders.retry(actor, name, approval)
            return RedirectResponse(f"/runs/{quote(done.run.name if done.run else name)}", status_code=303)
        record, preview = self.orders.preview_retry(actor, name)
        return self.renderer.html(
            request,
            "confirm.html.j2",
            title=f"Retry {record.name} ({record.command})",
            preview=preview,
            target=request.url.path,
            values={},
            key=secrets.token_urlsafe(24),
            back=f"/runs/{quote(record.name)}",
        )

    async def api_list(self, request: Request) -> Response:
        del request
        found = await run_in_threadpool(runs.read, self.context)
        return json_response({"runs": [to_data(record) for record in found]})

    async def api_show(self, request: Request) -> Response:
        return json_response(await run_in_threadpool(self._api_show, request.path_params["run"]))

    def _api_show(self, name: str) -> dict[str, Any]:
        record = runs.find(self.context, name)
        nodes = [to_data(one) for one in runs.progress(self.context, record)]
        lines = [visible_line(line) for line in runs.log_lines(self.context, record.name, LINES)]
        return {**to_data(record), "nodes": nodes, "lines": lines}

    @needs(UserRole.OPERATOR)
    async def api_cancel(self, request: Request) -> Response:
        result = await run_in_threadpool(self.orders.cancel, actor_of(request), request.path_params["run"])
        return json_response({"result": to_data(result)})

    @needs(UserRole.OPERATOR)
    async def api_retry(self, request: Request) -> Response:
        body = await json_body(request)
        return await run_in_threadpool(self._api_retry, request, body.get("approved", ""))

    def _api_retry(self, request: Request, approved: str) -> Response:
        actor, name = actor_of(request), request.path_params["run"]
        if approved:
            return done_json(
                self.orders.retry(actor, name, Approval(digest=approved, key=request.headers.get(KEY, "")))
            )
        return preview_json(self.orders.preview_retry(actor, name)[1])


def state_text(record: RunRecord) -> str:
    """Return the state, with the exit code where it has ended."""
    return f"ended {record.exit_code}" if record.state is RunState.ENDED else record.state.value


def given_text(record: RunRecord) -> str:
    """Return the fields of the request that are set, as one line."""
    given = {key: value for key, value in record.request.items() if value not in (None, "", [], False)}
    return ", ".join(
        f"{key}: {' '.join(map(str, value)) if isinstance(value, list) else value}" for key, value in given.items()
    )


def log_text(context: SiteContext, record: RunRecord) -> str:
    """Return the last lines of a run's log, nothing in them hidden."""
    return "\n".join(visible_line(line) for line in runs.log_lines(context, record.name, LINES))
