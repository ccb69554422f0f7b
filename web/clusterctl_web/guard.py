"""Guards each request: who sends it, whether the role suffices, and that no foreign page has sent it.

What a page needs of it: `actor_of(request)`, `@needs(UserRole.ADMIN)`, `form_of(request)`; in a template the macro
`form` of `form.html.j2`. Without a decorator a GET needs a viewer, and every other method an operator.
"""

from __future__ import annotations

import functools
import hmac
import re
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar
from urllib.parse import parse_qs, quote

from starlette.datastructures import MutableHeaders
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from clusterctl.fleet.access import UserRole
from clusterctl.fleet.errors import AuthenticationError, ClusterctlError, PrivilegeError, UsageError
from clusterctl_web.sessions import Actor, UserSessions

SIGN_OUT = "/sign-out"
LIVE = "/changes"
"""Event streams do not keep a session from becoming idle."""
OF_OWN_JOB = re.compile(r"(?:/api/v1)?/jobs/[^/]+/(?:why|stacks|stop)|/api/v1/jobs(?:/[^/]+/watch)?")
"""Every user may order an own run, have evidence of it collected, and stop it: the endpoint checks whose job it is."""
SAFE = frozenset({"GET", "HEAD"})
METHODS = SAFE | {"POST", "DELETE"}
LARGEST_FORM = 64 << 10
MOST_FIELDS = 200
FORM_TYPE = "application/x-www-form-urlencoded"
HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; img-src 'self'; "
        "base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "same-origin",  # with no-referrer a browser sends no Origin with a form
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}
TLS_HEADERS = {"Strict-Transport-Security": "max-age=31536000"}
F = TypeVar("F", bound=Callable[..., Awaitable[Response]])


@dataclass(frozen=True, slots=True)
class Form:
    """The fields of a form that was sent."""

    fields: Mapping[str, list[str]] = field(default_factory=dict)

    def text(self, name: str, default: str = "") -> str:
        """Return the last value of a field, without blanks around it."""
        return self.fields.get(name, [default])[-1].strip()

    def texts(self, name: str) -> tuple[str, ...]:
        """Return all values of a field."""
        return tuple(self.fields.get(name, ()))


def actor_of(request: Request) -> Actor:
    """Return who sends the request. Raises `AuthenticationError` on a public page without a session."""
    actor = request.state.actor
    if not isinstance(actor, Actor):
        raise AuthenticationError("you are not signed in", remedy="sign in first")
    return actor


def form_of(request: Request) -> Form:
    """Return the fields of the form that the request sends; its CSRF token was checked."""
    form = getattr(request.state, "form", None)
    return form if isinstance(form, Form) else Form()


def needs(role: UserRole) -> Callable[[F], F]:
    """Return the decorator of an endpoint that only actors with this role may use."""

    def decorate(endpoint: F) -> F:
        @functools.wraps(endpoint)
        async def call(*arguments: Any) -> Response:
            require_role(actor_of(arguments[-1]), role)
            return await endpoint(*arguments)

        return call  # type: ignore[return-value]

    return decorate


def require_role(actor: Actor, role: UserRole) -> None:
    """Raise `PrivilegeError` where the actor's role does not suffice."""
    if not actor.role.includes(role):
        remedy = "ask an administrator of this page"
        raise PrivilegeError(f"{actor.name} is {actor.role.value}; this needs {role.value}", remedy=remedy)


def safe_path(given: str) -> str:
    """Return a path of this page to go to; `/` for what leads elsewhere (browsers take a backslash for a slash)."""
    own = given.startswith("/") and not given.startswith("//") and "\\" not in given and given.isprintable()
    return given if own and given.isascii() and not given.startswith("/sign-in") else "/"


def same_text(left: str, right: str) -> bool:
    """Compare secrets in constant time."""
    return hmac.compare_digest(left.encode(), right.encode())


class Guard:
    """ASGI middleware around all pages."""

    def __init__(self, app: ASGIApp, sessions: UserSessions) -> None:
        self._app = app
        self._sessions = sessions
        self._access = sessions.access

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            raise RuntimeError(f"{scope['type']} is not served")
        request = Request(scope, receive)
        sender = self._with_headers(send)
        try:
            refusal, receive = await self._check(request, receive)
        except ClusterctlError as error:
            refusal = PlainTextResponse(f"{error}\n", 400 if isinstance(error, UsageError) else 503)
        if refusal is not None:
            await refusal(scope, receive, sender)
            return
        await self._app(scope, receive, sender)

    def _with_headers(self, send: Send) -> Send:
        extra = {**HEADERS, **(TLS_HEADERS if self._access.tls else {})}

        async def sender(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message).update(extra)
            await send(message)

        return sender

    async def _check(self, request: Request, receive: Receive) -> tuple[Response | None, Receive]:
        """Return the refusal, None where the request is fine; and how its body is received from here on."""
        if request.method not in METHODS:
            return PlainTextResponse("not allowed\n", 405), receive
        entered = self._enter(request)
        if entered is not None:
            return entered, receive
        actor = self._identify(request)
        request.state.actor = actor
        if actor is None and not _is_public(request.url.path):
            return self._refuse(request), receive
        if request.method in SAFE:
            return None, receive
        return await self._check_change(request, receive, actor)

    def _enter(self, request: Request) -> Response | None:
        """Return the answer to the printed address, which holds the token of this start; None for other addresses."""
        given, start = request.query_params.get("token"), self._access.start
        if given is None or start is None or request.method != "GET" or not start.matches(given):
            return None
        answer = RedirectResponse(safe_path(request.url.path), status_code=303)
        set_session(answer, self._sessions, self._sessions.start())
        return answer

    def _identify(self, request: Request) -> Actor | None:
        kind, _, secret = request.headers.get("authorization", "").partition(" ")
        if kind.lower() == "bearer":
            return self._sessions.bearer(secret.strip())
        cookie = request.cookies.get(self._access.session_cookie, "")
        return self._sessions.find(cookie, used=not request.url.path.startswith(LIVE)) if cookie else None

    def _refuse(self, request: Request) -> Response:
        if request.url.path.startswith("/api/"):
            error = {"kind": "authentication", "message": "no valid token or session", "where": "", "remedy": ""}
            return JSONResponse({"error": error}, 401, {"WWW-Authenticate": "Bearer"})
        if request.method in SAFE and "text/html" in request.headers.get("accept", ""):
            query = f"?{request.url.query}" if request.url.query else ""
            return RedirectResponse(f"/sign-in?next={quote(request.url.path + query, safe='')}", status_code=303)
        text = "Sign in, send a bearer token, or open the address that clusterctl web has printed.\n"
        return PlainTextResponse(text, 401, {"WWW-Authenticate": "Bearer"})

    async def _check_change(
        self, request: Request, receive: Receive, actor: Actor | None
    ) -> tuple[Response | None, Receive]:
        """Check a request that changes something: it comes from our own page, or brings a bearer token."""
        if _is_foreign(request):
            return PlainTextResponse("this form was sent by a foreign page\n", 403), receive
        if request.headers.get("content-type", "").partition(";")[0].strip().lower() == FORM_TYPE:
            body = await _body(request)
            request.state.form = _parsed(body)
            receive = _replayed(body, receive)
        if not self._has_form_token(request, actor):
            return PlainTextResponse("this form is too old: open the page again\n", 403), receive
        path = request.url.path
        free = _is_public(path) or path == SIGN_OUT or OF_OWN_JOB.fullmatch(path) is not None
        if actor is not None and not free and not actor.role.includes(UserRole.OPERATOR):
            return PlainTextResponse(f"{actor.name} is {actor.role.value}; this needs operator\n", 403), receive
        return None, receive

    def _has_form_token(self, request: Request, actor: Actor | None) -> bool:
        """Return whether the request brings the token of its session or sign-in form, or an API token needs none."""
        if actor is not None and not actor.csrf:
            return True
        expected = actor.csrf if actor else request.cookies.get(form_cookie(self._access.session_cookie), "")
        given = request.headers.get("x-csrf-token") or form_of(request).text("csrf")
        return bool(expected) and same_text(given, expected)


def form_cookie(session_cookie: str) -> str:
    """Return the name of the cookie that binds the sign-in form to a browser without a session."""
    return f"{session_cookie}-form"


def set_session(answer: Response, sessions: UserSessions, cookie: str) -> None:
    """Set the cookie of a session: scripts cannot read it, and foreign pages cannot send a form with it."""
    access = sessions.access
    seconds = int(access.lifetime.total_seconds())
    answer.set_cookie(
        access.session_cookie, cookie, max_age=seconds, httponly=True, samesite="lax", secure=access.tls, path="/"
    )


def _is_public(path: str) -> bool:
    return path == "/sign-in" or path.startswith(("/sign-in/", "/static/"))


def _is_foreign(request: Request) -> bool:
    """Return whether the browser reports that another page sends this (Fetch Metadata; Origin, RFC 6454)."""
    if request.headers.get("sec-fetch-site", "same-origin") not in ("same-origin", "none"):
        return True
    origin = request.headers.get("origin")
    return origin is not None and origin != f"{request.url.scheme}://{request.headers.get('host', '')}"


async def _body(request: Request) -> bytes:
    body = bytearray()
    async for chunk in request.stream():
        body += chunk
        if len(body) > LARGEST_FORM:
            raise UsageError("the form is too large", remedy=f"send at most {LARGEST_FORM >> 10} KiB")
    return bytes(body)


def _parsed(body: bytes) -> Form:
    try:
        return Form(parse_qs(body.decode(), keep_blank_values=True, max_num_fields=MOST_FIELDS))
    except ValueError:
        raise UsageError("is no form", remedy="send the fields of the page") from None


def _replayed(body: bytes, receive: Receive) -> Receive:
    """Return a receiver that begins with the body that was read already."""
    sent = False

    async def again() -> Message:
        nonlocal sent
        if sent:
            return await receive()
        sent = True
        return {"type": "http.request", "body": body, "more_body": False}

    return again
