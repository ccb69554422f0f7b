"""The downtime of the site's supervised runs, as a page and as an endpoint of the JSON API."""

from __future__ import annotations

from dataclasses import dataclass

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from clusterctl.fleet.durations import parse_past
from clusterctl.fleet.errors import UsageError
from clusterctl.operations.context import SiteContext
from clusterctl.operations.downtime import DowntimeReport, DowntimeRequest, report, report_json
from clusterctl.operations.operation import current_time
from clusterctl_web.api import json_response
from clusterctl_web.openapi import BASE, SPANS
from clusterctl_web.rendering import Renderer


@dataclass(frozen=True, slots=True)
class DowntimePage:
    """What `clusterctl report --downtime` reports, for each reader: it names runs and jobs, and has no text of them."""

    context: SiteContext
    renderer: Renderer

    def routes(self) -> list[Route]:
        return [Route("/downtime", self.show), Route(f"{BASE}/downtime", self.read, methods=["GET"])]

    async def show(self, request: Request) -> Response:
        return await run_in_threadpool(self._page, request)

    async def read(self, request: Request) -> Response:
        found = await run_in_threadpool(self._found, request)
        return json_response(report_json(found))

    def _page(self, request: Request) -> Response:
        found = report_json(self._found(request))
        since = request.query_params.get("since", "")
        return self.renderer.html(request, "downtime.html.j2", found=found, since=since, spans=SPANS)

    def _found(self, request: Request) -> DowntimeReport:
        """Return the report of the runs that were ordered since the query's `since`. Raises `UsageError`."""
        since = request.query_params.get("since", "")
        if since and since not in SPANS:
            raise UsageError("is no time that the page offers", where="since", remedy=f"one of {', '.join(SPANS)}")
        at = parse_past(since, current_time(), where="since") if since else None
        return report(self.context, DowntimeRequest(since=at))
