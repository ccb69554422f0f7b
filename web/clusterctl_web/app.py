"""The web page as an ASGI application: assembles guard, sign-in and pages of one site."""

from __future__ import annotations

from dataclasses import dataclass

from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.requests import Request
from starlette.responses import Response

from clusterctl.fleet.errors import (
    AuthenticationError,
    ClusterctlError,
    ConflictError,
    PrivilegeError,
    UsageError,
)
from clusterctl_web.guard import SAFE, Guard
from clusterctl_web.live_fleet import LiveFleet
from clusterctl_web.pages import Pages
from clusterctl_web.rate_limit import StreamLimit
from clusterctl_web.rendering import Renderer
from clusterctl_web.sessions import Access, Sessions
from clusterctl_web.sign_in import SignIn


def application(live: LiveFleet, access: Access) -> Starlette:
    """Return the application of one site."""
    renderer = Renderer(live.context.site.settings)
    sessions = Sessions(access)
    pages = Pages(live, renderer, sessions, StreamLimit())
    return Starlette(
        routes=[*SignIn(sessions, renderer).routes(), *pages.routes()],
        middleware=[
            Middleware(TrustedHostMiddleware, allowed_hosts=list(access.hosts), www_redirect=False),
            Middleware(Guard, sessions=sessions),
        ],
        exception_handlers={ClusterctlError: _Problems(renderer).answer},
    )


@dataclass(frozen=True, slots=True)
class _Problems:
    """Errors as pages."""

    renderer: Renderer

    async def answer(self, request: Request, error: Exception) -> Response:
        if not isinstance(error, ClusterctlError):
            raise error
        return self.renderer.html(request, "problem.html.j2", status_of(error, request.method), error=error)


def status_of(error: ClusterctlError, method: str) -> int:
    """Return the HTTP status of an error."""
    match error:
        case UsageError():
            return 404 if method in SAFE else 400
        case PrivilegeError():
            return 403
        case AuthenticationError():
            return 401
        case ConflictError():
            return 409
    return 503
