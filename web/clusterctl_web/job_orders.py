"""Supervised runs that their users order: endpoints of the JSON API. The user's own `sbatch` submits them."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response, StreamingResponse
from starlette.routing import Route

from clusterctl.fleet.errors import PrivilegeError, UsageError
from clusterctl.fleet.peer_text import visible_json
from clusterctl.operations import detached, job_orders
from clusterctl.operations.job_inputs import JobRunRequest
from clusterctl.operations.job_views import JobReader, JobViews, shown_run
from clusterctl.operations.job_watchers import Order, require_watcher
from clusterctl.operations.operation import Control
from clusterctl.operations.serial import from_data, to_data
from clusterctl_web.action_pages import read_json
from clusterctl_web.api import json_response
from clusterctl_web.job_pages import reader_of
from clusterctl_web.live_fleet import POLL_S
from clusterctl_web.openapi import BASE
from clusterctl_web.pages import BUSY, KEEP_ALIVE_S
from clusterctl_web.rate_limit import StreamLimit


@dataclass
class JobOrders:
    """Orders runs for the user of a token or session, and reports how they go on. Thread-safe.

    `start`: by which a watcher of a run is started.
    """

    views: JobViews
    streams: StreamLimit
    validity: Callable[[Request], Callable[[], bool]]
    start: Order = detached.order
    _one: threading.Lock = field(default_factory=threading.Lock)

    def routes(self) -> list[Route]:
        return [
            Route(f"{BASE}/jobs", self.order, methods=["POST"]),
            Route(f"{BASE}/jobs/{{job}}/watch", self.watch, methods=["POST"]),
            Route(f"{BASE}/jobs/{{job}}/events", self.events),
        ]

    async def order(self, request: Request) -> Response:
        """Return the preview of a run; with its digest as `approved`, order it and return it."""
        body = await read_json(request)
        return await run_in_threadpool(self._order, reader_of(request), body)

    def _order(self, reader: JobReader, body: Mapping[str, Any]) -> Response:
        unknown = sorted(set(body) - {"request", "approved"})
        if unknown:
            raise UsageError("there is no such field", where=unknown[0], remedy="one of request, approved")
        wanted, approved = from_data(JobRunRequest, body.get("request")), body.get("approved", "")
        if not approved:
            preview = job_orders.preview(self.views.context, reader.user, wanted)
            return json_response({"preview": to_data(preview), "digest": preview.digest})
        if not isinstance(approved, str):
            raise UsageError("is no digest", where="approved", remedy="send that of the preview")
        with self._one, self.views.opened(reader, "job run") as context:
            found = job_orders.order(context, reader.user, wanted, Control(approved))
            require_watcher(context, found.id, self.start)
            return json_response({"run": shown_run(found, reader)})

    async def watch(self, request: Request) -> Response:
        """Have an own run watched, where no watcher follows it."""
        return await run_in_threadpool(self._watch, reader_of(request), request.path_params["job"])

    def _watch(self, reader: JobReader, name: str) -> Response:
        found = self.views.run(name)
        if not reader.sees(found.owner):
            raise PrivilegeError(
                f"it is a run of {found.owner}", where=found.id, remedy="ask its owner, or an administrator"
            )
        if found.outcome is None and found.ordered.submitter:
            with self._one, self.views.opened(reader, "job watch") as context:
                require_watcher(context, found.id, self.start)
        return json_response({"run": shown_run(found, reader)})

    async def events(self, request: Request) -> Response:
        """Send server-sent events: a run and its last step, as they change, until it is over."""
        reader = reader_of(request)
        found = await run_in_threadpool(self.views.run, request.path_params["job"])
        if not self.streams.take(reader.name):
            return PlainTextResponse(BUSY, 429, {"Retry-After": "30"})
        sent = self._events(reader, found.id, self.validity(request))
        return StreamingResponse(sent, media_type="text/event-stream")

    async def _events(self, reader: JobReader, run: str, valid: Callable[[], bool]) -> AsyncIterator[str]:
        before, silent, goes_on = "", 0.0, True
        with self.streams.held(reader.name):
            while goes_on and valid():
                goes_on, data = await run_in_threadpool(self._data, reader, run)
                if data != before:
                    yield f"data: {data}\n\n"
                    before, silent = data, 0.0
                elif silent >= KEEP_ALIVE_S:
                    yield ": still here\n\n"
                    silent = 0.0
                silent += POLL_S
                await asyncio.sleep(POLL_S if goes_on else 0)

    def _data(self, reader: JobReader, run: str) -> tuple[bool, str]:
        found = self.views.run(run)
        document = {"run": shown_run(found, reader), "step": self.views.last_step(found)}
        return found.outcome is None, visible_json(json.dumps(document, ensure_ascii=False))
