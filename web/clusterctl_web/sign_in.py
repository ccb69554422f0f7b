"""Sign-in with a password or at an identity provider, and sign-out."""

from __future__ import annotations

import logging
import secrets
import threading
from collections import OrderedDict
from dataclasses import dataclass, field

import anyio
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from clusterctl.fleet.errors import AuthenticationError, ClusterctlError, PrivilegeError, UsageError
from clusterctl.fleet.peer_text import visible_line
from clusterctl.ports.sign_in import IdentityProvider, SignInRequest
from clusterctl_web.guard import SIGN_OUT, form_cookie, form_of, safe_path, set_session
from clusterctl_web.rate_limit import RateLimit, address_key
from clusterctl_web.rendering import Renderer
from clusterctl_web.sessions import SignInRules, UserSessions

log = logging.getLogger(__name__)

ADDRESS_ATTEMPTS, ADDRESS_S = 20, 300.0
USER_ATTEMPTS, USER_S = 10, 900.0
LONGEST_INPUT = 256
DIGESTS_AT_ONCE = 2
"""Passwords that are checked at the same time: each takes 64 MiB and several processors."""
PENDING_S = 600.0
MOST_PENDING = 1000
WRONG = "The user name or the password is wrong."


@dataclass(frozen=True, slots=True)
class _Pending:
    """A sign-in at the provider that one browser has begun."""

    request: SignInRequest
    next: str
    begun: float


@dataclass
class SignIn:
    """The pages below /sign-in, and /sign-out."""

    sessions: UserSessions
    renderer: Renderer
    by_address: RateLimit = field(init=False)
    by_user: RateLimit = field(init=False)
    _pending: OrderedDict[str, _Pending] = field(default_factory=OrderedDict)
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _digests: anyio.CapacityLimiter = field(default_factory=lambda: anyio.CapacityLimiter(DIGESTS_AT_ONCE))

    def __post_init__(self) -> None:
        clock = self.access.clock
        self.by_address = RateLimit(ADDRESS_ATTEMPTS, ADDRESS_S, clock)
        self.by_user = RateLimit(USER_ATTEMPTS, USER_S, clock)

    @property
    def access(self) -> SignInRules:
        return self.sessions.access

    def routes(self) -> list[Route]:
        return [
            Route("/sign-in", self.page),
            Route("/sign-in", self.with_password, methods=["POST"]),
            Route("/sign-in/provider", self.to_provider, methods=["POST"]),
            Route("/sign-in/callback", self.from_provider),
            Route(SIGN_OUT, self.out, methods=["POST"]),
        ]

    async def page(self, request: Request) -> Response:
        return self._page(request, next_path=request.query_params.get("next", "/"))

    def _page(
        self, request: Request, *, next_path: str, problem: str = "", status: int = 200, wait: float = 0.0
    ) -> Response:
        actor = request.state.actor
        name = form_cookie(self.access.session_cookie)
        csrf = actor.csrf if actor else request.cookies.get(name, "") or secrets.token_urlsafe(32)
        answer = self.renderer.html(
            request,
            "sign_in.html.j2",
            status,
            csrf=csrf,
            next=safe_path(next_path),
            problem=problem,
            provider=self.access.provider.label if self.access.provider else "",
            has_users=bool(self.access.accounts.users()),
            has_start=self.access.start is not None,
        )
        if actor is None:
            answer.set_cookie(name, csrf, httponly=True, samesite="strict", secure=self.access.tls, path="/")
        if wait:
            answer.headers["Retry-After"] = str(int(wait) + 1)
        return answer

    async def with_password(self, request: Request) -> Response:
        form = form_of(request)
        name, password = form.text("user")[:LONGEST_INPUT], form.fields.get("password", [""])[-1]
        next_path = safe_path(form.text("next", "/"))
        wait = self._wait(request, name)
        if wait:
            problem = "There were too many attempts. Wait some minutes, then try again."
            return self._page(request, next_path=next_path, problem=problem, status=429, wait=wait)
        user = None
        if len(password) <= LONGEST_INPUT:
            user = await anyio.to_thread.run_sync(self.access.accounts.check, name, password, limiter=self._digests)
        if user is None:
            log.warning("sign-in refused: %s from %s", visible_line(name, 40), _address(request))
            return self._page(request, next_path=next_path, problem=WRONG, status=401)
        self.by_address.give_back(address_key(_address(request)))
        self.by_user.give_back(name)
        log.info("signed in: %s from %s", user.name, _address(request))
        return self._entered(request, self.sessions.of_user(user), next_path)

    def _wait(self, request: Request, name: str) -> float:
        """Count an attempt; return the seconds until the next is allowed, 0 where this one is."""
        address = address_key(_address(request))
        wait = self.by_address.take(address)
        return wait or self.by_user.take(name)

    def _entered(self, request: Request, cookie: str, next_path: str) -> Response:
        """Begin the session in the browser; the one that it had before ends."""
        old = request.cookies.get(self.access.session_cookie, "")
        if old:
            self.sessions.end(old)
        answer = RedirectResponse(next_path, status_code=303)
        set_session(answer, self.sessions, cookie)
        answer.delete_cookie(form_cookie(self.access.session_cookie), secure=self.access.tls, path="/")
        return answer

    def _provider(self) -> IdentityProvider:
        if self.access.provider is None:
            raise UsageError("the site has no identity provider", remedy="sign in with a user name and a password")
        return self.access.provider

    async def to_provider(self, request: Request) -> Response:
        """Send the browser to the provider. A cookie binds its answer to this browser."""
        provider = self._provider()
        wait = self.by_address.take(address_key(_address(request)))
        next_path = safe_path(form_of(request).text("next", "/"))
        if wait:
            problem = "There were too many attempts. Wait some minutes, then try again."
            return self._page(request, next_path=next_path, problem=problem, status=429, wait=wait)
        redirect = f"{request.url.scheme}://{request.headers['host']}/sign-in/callback"
        begun = await run_in_threadpool(provider.begin, redirect)
        key = secrets.token_urlsafe(32)
        self._remember(key, _Pending(begun, next_path, self.access.clock()))
        answer = self.renderer.html(request, "to_provider.html.j2", url=begun.url, label=provider.label)
        answer.headers["Refresh"] = f"0; url={begun.url}"  # a redirect would be stopped by form-action of the CSP
        answer.set_cookie(
            self._flow_cookie, key, max_age=int(PENDING_S), httponly=True, samesite="lax", secure=self.access.tls,
            path="/",
        )  # fmt: skip
        return answer

    @property
    def _flow_cookie(self) -> str:
        return f"{self.access.session_cookie}-flow"

    def _remember(self, key: str, pending: _Pending) -> None:
        with self._lock:
            self._pending[key] = pending
            while len(self._pending) > MOST_PENDING:
                self._pending.popitem(last=False)

    def _take(self, key: str) -> _Pending | None:
        """Return a sign-in that this browser has begun, once."""
        with self._lock:
            pending = self._pending.pop(key, None)
        return pending if pending and self.access.clock() - pending.begun < PENDING_S else None

    async def from_provider(self, request: Request) -> Response:
        """Take the provider's answer."""
        provider = self._provider()
        pending = self._take(request.cookies.get(self._flow_cookie, ""))
        if pending is None:
            problem = "This sign-in was not begun in this browser, or took too long. Sign in again."
            return self._page(request, next_path="/", problem=problem, status=400)
        try:
            answer = dict(request.query_params)
            identity = await run_in_threadpool(provider.finish, pending.request, answer)
        except ClusterctlError as error:
            log.warning("sign-in refused: %s from %s", error.message, _address(request))
            status = (
                403 if isinstance(error, PrivilegeError) else 401 if isinstance(error, AuthenticationError) else 503
            )
            return self._page(request, next_path=pending.next, problem=f"{error}", status=status)
        log.info("signed in: %s from %s", identity.name, _address(request))
        entered = self._entered(request, self.sessions.of_identity(identity), pending.next)
        entered.delete_cookie(self._flow_cookie, secure=self.access.tls, path="/")
        return entered

    async def out(self, request: Request) -> Response:
        """End the session."""
        self.sessions.end(request.cookies.get(self.access.session_cookie, ""))
        answer = RedirectResponse("/sign-in", status_code=303)
        answer.delete_cookie(self.access.session_cookie, secure=self.access.tls, path="/")
        return answer


def _address(request: Request) -> str:
    return request.client.host if request.client else ""
