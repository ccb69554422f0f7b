"""The nights and the work orders of a site."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import groupby

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from clusterctl.operations.nights import site_nights
from clusterctl.operations.reports import site_work_orders
from clusterctl_web.live_fleet import LiveFleet
from clusterctl_web.rendering import Renderer


@dataclass(frozen=True, slots=True)
class OperationPages:
    """Pages of what the site does by itself, and of what is to be done by hand."""

    live: LiveFleet
    renderer: Renderer

    def routes(self) -> list[Route]:
        return [Route("/nights", self.nights), Route("/work-orders", self.work_orders)]

    async def nights(self, request: Request) -> Response:
        found = await run_in_threadpool(site_nights, self.live.context)
        nightly = self.live.context.site.settings.nightly
        return self.renderer.html(request, "nights.html.j2", nights=found.nights, record=found.record, nightly=nightly)

    async def work_orders(self, request: Request) -> Response:
        sheet = await run_in_threadpool(site_work_orders, self.live.context)
        racks = [(rack, list(orders)) for rack, orders in groupby(sheet.orders, key=lambda one: one.location.rack)]
        return self.renderer.html(request, "work_orders.html.j2", sheet=sheet, racks=racks)
