"""The web page as an ASGI application: assembles guard, sign-in and pages of one site."""

from __future__ import annotations

from dataclasses import dataclass

from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.requests import Request
from starlette.responses import Response

from clusterctl.fleet.errors import ClusterctlError
from clusterctl.operations import detached
from clusterctl.operations.job_views import JobViews
from clusterctl.operations.job_watchers import Order
from clusterctl.operations.metrics import FleetMetrics
from clusterctl_web.action_pages import ActionPages
from clusterctl_web.actions import INCIDENTS, NODES, PLANS, Orders
from clusterctl_web.alert_hook import AlertHook
from clusterctl_web.api import Api, error_json, json_response, status_of
from clusterctl_web.change_feed import ChangeFeed
from clusterctl_web.downtime_page import DowntimePage
from clusterctl_web.fabric_page import FabricPages, LiveFabric
from clusterctl_web.guard import Guard
from clusterctl_web.job_orders import JobOrders
from clusterctl_web.job_pages import JobPages
from clusterctl_web.live_fleet import LiveFleet
from clusterctl_web.live_orders import LiveOrders
from clusterctl_web.node_api import NodeApi
from clusterctl_web.node_details import MachineReads, NodeDetails
from clusterctl_web.node_view import NodeViews
from clusterctl_web.operation_pages import OperationPages
from clusterctl_web.pages import Pages
from clusterctl_web.plan_pages import PlanPages
from clusterctl_web.rate_limit import StreamLimit
from clusterctl_web.rendering import Renderer
from clusterctl_web.run_pages import RunPages
from clusterctl_web.sessions import SignInRules, UserSessions
from clusterctl_web.sign_in import SignIn


def application(
    live: LiveFleet, access: SignInRules, figures: FleetMetrics | None = None, start: Order = detached.order
) -> Starlette:
    """Return the application of one site.

    `figures`: those that the caller reads in advance; `start`: by which the watchers of users' runs are started.
    """
    figures = figures or FleetMetrics(live.context)
    renderer = Renderer(live.context.site.settings)
    sessions = UserSessions(access)
    streams = StreamLimit()
    work, reads = LiveOrders(live), MachineReads()
    pages = Pages(live, renderer, sessions, streams, figures, NodeViews(live, work), ChangeFeed(live))
    orders, jobs = Orders(live.context.site.folder), JobViews(live.context)
    more = [
        *ActionPages(orders, renderer, NODES).routes(),
        *ActionPages(orders, renderer, PLANS).routes(),
        *ActionPages(orders, renderer, INCIDENTS).routes(),
        *RunPages(live.context, orders, renderer, streams, pages.validity).routes(),
        *AlertHook(live.context).routes(),
        *Api(live, work, figures).routes(),
        *FabricPages(LiveFabric(live), renderer).routes(),
        *OperationPages(live, work, renderer).routes(),
        *NodeDetails(live, renderer, figures, reads).routes(),
        *NodeApi(live, figures, reads).routes(),
        *PlanPages(live.context, renderer).routes(),
        *JobOrders(jobs, streams, pages.validity, start).routes(),
        *JobPages(jobs, renderer).routes(),
        *DowntimePage(live.context, renderer).routes(),
    ]
    return Starlette(
        routes=[*SignIn(sessions, renderer).routes(), *pages.routes(), *more],
        middleware=[
            Middleware(TrustedHostMiddleware, allowed_hosts=list(access.hosts), www_redirect=False),
            Middleware(Guard, sessions=sessions),
        ],
        exception_handlers={ClusterctlError: _Problems(renderer).answer},
    )


@dataclass(frozen=True, slots=True)
class _Problems:
    """Errors as pages; below /api/ as documents."""

    renderer: Renderer

    async def answer(self, request: Request, error: Exception) -> Response:
        if not isinstance(error, ClusterctlError):
            raise error
        status = status_of(error, request.method)
        if request.url.path.startswith("/api/"):
            return json_response(error_json(error), status)
        return self.renderer.html(request, "problem.html.j2", status, error=error)
