"""One machine's BMC: authentication, methods and errors of the Redfish protocol (DMTF DSP0266)."""

from __future__ import annotations

import base64
import binascii
import json
import secrets
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from clusterctl.lab.faces.redfish.control import PowerButton, override_boot, required
from clusterctl.lab.faces.redfish.profile import Problem, Profile, RefusedError
from clusterctl.lab.faces.redfish.resource import Resource, Tree
from clusterctl.lab.faces.redfish.sessions import Sessions
from clusterctl.lab.faces.redfish.view import LogRecord, View
from clusterctl.lab.world import World

LIFECYCLE_LOG_CAPACITY = 500


@dataclass(frozen=True, slots=True)
class Request:
    """What of an HTTP request matters here. `token` is X-Auth-Token, `authorization` the Authorization header."""

    method: str
    path: str
    body: bytes = b""
    token: str = ""
    authorization: str = field(default="", repr=False)
    client: str = ""


@dataclass(frozen=True, slots=True)
class Answer:
    """`body` None: no content."""

    status: int
    body: Resource | None = None
    headers: Mapping[str, str] = field(default_factory=dict)


class Bmc:
    """Answers requests for one machine, from the world as it is at that moment."""

    def __init__(self, world: World, name: str, profile: Profile, clock: Callable[[], float] = time.monotonic) -> None:
        self._world = world
        self._name = name
        self._profile = profile
        self._sessions = Sessions(profile.max_sessions, profile.session_timeout, clock)
        self._power = PowerButton(world, name, profile)
        self._lifecycle_log: list[LogRecord] = []
        self._rendered: tuple[View, Tree] | None = None
        self._writes: dict[tuple[str, str], Callable[[Request], Answer]] = {
            ("POST", profile.paths.sessions): self._log_in,
            ("POST", profile.paths.reset): self._reset,
            ("POST", profile.paths.clear_sel): self._clear_sel,
            ("PATCH", profile.paths.system): self._patch_system,
        }

    def answer(self, request: Request) -> Answer:
        """The answer to any request; a refusal is an answer too."""
        path = request.path.rstrip("/")
        try:
            self._authenticate(request, path)
            return self._route(request, path)
        except RefusedError as refused:
            status, body = self._profile.refusal(refused)
            return Answer(status, body, self._refusal_headers(refused, path))

    async def close(self) -> None:
        await self._power.close()

    def _route(self, request: Request, path: str) -> Answer:
        methods = self._methods(path)
        if not methods:
            raise RefusedError(Problem.NOT_FOUND, request.path)
        if request.method not in methods:
            raise RefusedError(Problem.METHOD_NOT_ALLOWED)
        if request.method == "DELETE":
            self._sessions.delete(path.rsplit("/", 1)[-1])
            return Answer(204)
        write = self._writes.get((request.method, path))
        return write(request) if write else Answer(200, self._tree()[path])

    def _methods(self, path: str) -> tuple[str, ...]:
        """What may be done to a path; empty where there is nothing."""
        reads = ("GET", "HEAD") if path in self._tree() else ()
        writes = tuple(method for method, target in self._writes if target == path)
        is_session = bool(reads) and path.startswith(self._profile.paths.sessions + "/")
        return (*reads, *writes, *(("DELETE",) if is_session else ()))

    def _authenticate(self, request: Request, path: str) -> None:
        """Everything but the service root and a login needs a session or basic authentication."""
        anonymous = {("GET", "/redfish"), ("GET", self._profile.paths.root), ("POST", self._profile.paths.sessions)}
        if (request.method, path) in anonymous:
            return
        if request.token and self._sessions.authenticate(request.token):
            return
        if not self._is_us(*_basic(request.authorization)):
            raise RefusedError(Problem.UNAUTHORIZED)

    def _is_us(self, user: str, password: str) -> bool:
        bmc = self._world.machines[self._name].bmc
        right_password = secrets.compare_digest(password.encode(), bmc.password.encode())
        return secrets.compare_digest(user.encode(), bmc.user.encode()) and right_password

    def _log_in(self, request: Request) -> Answer:
        body = _json(request.body)
        user, password = required(body, "UserName"), required(body, "Password")
        if not self._is_us(user, password):
            raise RefusedError(Problem.UNAUTHORIZED)
        session, token = self._sessions.create(user, request.client)
        at = datetime.now(UTC).isoformat(timespec="seconds")
        self._lifecycle_log.append(self._profile.login_record(at, user, request.client))
        del self._lifecycle_log[:-LIFECYCLE_LOG_CAPACITY]
        location = f"{self._profile.paths.sessions}/{session.id}"
        return Answer(201, self._tree()[location], {"X-Auth-Token": token, "Location": location})

    def _reset(self, request: Request) -> Answer:
        self._power.press(_json(request.body))
        return Answer(204)

    def _clear_sel(self, request: Request) -> Answer:
        _json(request.body)
        self._world.states[self._name].sel.clear()
        return Answer(204)

    def _patch_system(self, request: Request) -> Answer:
        override_boot(self._world.states[self._name], _json(request.body), self._profile)
        return Answer(200, self._profile.success())

    def _tree(self) -> Tree:
        """All resources as of now; rendered again only when something changed."""
        view = self._view()
        if self._rendered is None or self._rendered[0] != view:
            self._rendered = (view, self._profile.tree(view))
        return self._rendered[1]

    def _view(self) -> View:
        state = self._world.states[self._name]
        return View(
            machine=self._world.machines[self._name],
            power=state.power,
            running=state.running,
            boot_target=state.boot_target,
            boot_once=state.boot_once,
            sel=tuple(LogRecord(*entry) for entry in state.sel),
            lifecycle_log=tuple(self._lifecycle_log),
            sessions=self._sessions.views(),
        )

    def _refusal_headers(self, refused: RefusedError, path: str) -> Mapping[str, str]:
        if refused.problem is Problem.UNAUTHORIZED:
            return {"WWW-Authenticate": 'Basic realm="RedfishService"'}
        if refused.problem is Problem.METHOD_NOT_ALLOWED:
            return {"Allow": ", ".join(self._methods(path))}
        return {}


def _basic(authorization: str) -> tuple[str, str]:
    """User and password of a Basic header (RFC 7617); empty ones where there is none or it is broken."""
    scheme, _, encoded = authorization.partition(" ")
    if scheme.lower() != "basic":
        return "", ""
    try:
        user, _, password = base64.b64decode(encoded, validate=True).decode().partition(":")
    except (binascii.Error, UnicodeDecodeError):
        return "", ""
    return user, password


def _json(raw: bytes) -> Mapping[str, Any]:
    try:
        body = json.loads(raw or b"{}")
    except ValueError as error:
        raise RefusedError(Problem.MALFORMED_JSON) from error
    if not isinstance(body, dict):
        raise RefusedError(Problem.MALFORMED_JSON)
    return body
