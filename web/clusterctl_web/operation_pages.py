"""The incidents, nights, work orders and returned parts of a site."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import groupby

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from clusterctl.operations.incidents import by_channel, history, listed, named
from clusterctl.operations.nights import site_nights
from clusterctl.operations.rma import known_rmas
from clusterctl.operations.tickets import release_offer
from clusterctl_web.actions import INCIDENTS
from clusterctl_web.guard import actor_of
from clusterctl_web.live_fleet import LiveFleet
from clusterctl_web.live_orders import LiveOrders
from clusterctl_web.rendering import Renderer

MOST = 500
"""Incidents, and events of one, on a page."""


@dataclass(frozen=True, slots=True)
class OperationPages:
    """Pages of what the site does by itself, and of what is to be done by hand."""

    live: LiveFleet
    orders: LiveOrders
    renderer: Renderer

    def routes(self) -> list[Route]:
        return [
            Route("/incidents", self.incidents),
            Route("/incidents/{name}", self.incident),
            Route("/nights", self.nights),
            Route("/rma", self.rma),
            Route("/work-orders", self.work_orders),
        ]

    async def incidents(self, request: Request) -> Response:
        """Show the open incidents; with `?all=1` those that are resolved as well."""
        whole = request.query_params.get("all", "") == "1"
        found = await run_in_threadpool(listed, self.live.context, resolved=whole)
        return self.renderer.html(request, "incidents.html.j2", incidents=found[:MOST], count=len(found), whole=whole)

    async def incident(self, request: Request) -> Response:
        return await run_in_threadpool(self._incident, request, request.path_params["name"])

    def _incident(self, request: Request, name: str) -> Response:
        context = self.live.context
        found = named(context, name)
        return self.renderer.html(
            request,
            "incident.html.j2",
            incident=found,
            events=history(context, found.state.id)[: -MOST - 1 : -1],
            messages=by_channel(found.state),
            offer=release_offer(context, found.state),
            actions=INCIDENTS.offered(actor_of(request)) if found.state.open else (),
        )

    async def rma(self, request: Request) -> Response:
        """Show the parts that are under way to and from their vendors; with `?all=1` closed ones as well."""
        whole = request.query_params.get("all", "") == "1"
        found = await run_in_threadpool(known_rmas, self.live.context)
        rmas = [one for one in found if whole or one.open]
        return self.renderer.html(request, "rma.html.j2", rmas=rmas, whole=whole)

    async def nights(self, request: Request) -> Response:
        found = await run_in_threadpool(site_nights, self.live.context)
        nightly = self.live.context.site.settings.nightly
        return self.renderer.html(request, "nights.html.j2", nights=found.nights, record=found.record, nightly=nightly)

    async def work_orders(self, request: Request) -> Response:
        sheet = await run_in_threadpool(self.orders.current)
        racks = [(rack, list(orders)) for rack, orders in groupby(sheet.orders, key=lambda one: one.location.rack)]
        return self.renderer.html(request, "work_orders.html.j2", sheet=sheet, racks=racks)
