"""Who may do what: credentials, sessions, lock-out (DSP0266, "Authentication")."""

from __future__ import annotations

import base64
import binascii
import secrets
from collections.abc import Callable

from clusterctl_lab.emulators.redfish.context import BmcContext
from clusterctl_lab.emulators.redfish.exchange import Request, required
from clusterctl_lab.emulators.redfish.profile import Problem, RefusedError
from clusterctl_lab.emulators.redfish.sessions import Sessions
from clusterctl_lab.emulators.redfish.traits import Lockout, Traits
from clusterctl_lab.emulators.redfish.view import SessionView


class Access:
    """`clock` is any monotonic seconds. `rejected` counts all wrong logins."""

    def __init__(self, context: BmcContext, clock: Callable[[], float]) -> None:
        self._context = context
        self._clock = clock
        self._wrong = 0
        self._last_wrong = 0.0
        self.rejected = 0
        self.sessions = Sessions(clock)

    def admit(self, request: Request, traits: Traits) -> None:
        """Everything but the service root and a login needs a session or basic authentication."""
        paths = self._context.profile.paths
        anonymous = {("GET", "/redfish"), ("GET", paths.root), ("POST", paths.sessions)}
        if (request.method, request.path) in anonymous:
            return
        if request.token and self.sessions.authenticate(request.token, traits.session_timeout, traits.session_requests):
            return
        self._prove(*_basic(request.authorization), traits)

    def log_in(self, request: Request, traits: Traits) -> tuple[SessionView, str]:
        """A new session and its token."""
        body = request.json()
        user, password = str(required(body, "UserName")), str(required(body, "Password"))
        self._prove(user, password, traits)
        return self.sessions.create(user, request.client, traits.max_sessions, traits.session_timeout)

    def locked(self, traits: Traits) -> bool:
        """Return whether too many wrong passwords lock out every client without a session."""
        lockout = traits.lockout
        return lockout is not None and self._wrong >= lockout.tries and not self._forgiven(lockout)

    def restart(self) -> None:
        """End all sessions, as a restart of the BMC does."""
        self.sessions.clear()
        self._wrong = 0

    def _prove(self, user: str, password: str, traits: Traits) -> None:
        """Refuse everything but the account's name and password, and every request while the account is locked. A
        request without credentials is refused and does not count.
        """
        if self.locked(traits):
            raise RefusedError(Problem.UNAUTHORIZED)
        if self._is_us(user, password):
            self._wrong = 0
            return
        if user or password:
            if traits.lockout is not None and self._forgiven(traits.lockout):
                self._wrong = 0
            self._wrong += 1
            self.rejected += 1
            self._last_wrong = self._clock()
        raise RefusedError(Problem.UNAUTHORIZED)

    def _forgiven(self, lockout: Lockout) -> bool:
        return self._clock() - self._last_wrong >= lockout.seconds

    def _is_us(self, user: str, password: str) -> bool:
        bmc = self._context.machine.bmc
        right_password = secrets.compare_digest(password.encode(), bmc.password.encode())
        return secrets.compare_digest(user.encode(), bmc.user.encode()) and right_password


def _basic(authorization: str) -> tuple[str, str]:
    """Return user and password of a Basic header (RFC 7617); empty where the header is missing or malformed."""
    scheme, _, encoded = authorization.partition(" ")
    if scheme.lower() != "basic":
        return "", ""
    try:
        user, _, password = base64.b64decode(encoded, validate=True).decode().partition(":")
    except (binascii.Error, UnicodeDecodeError):
        return "", ""
    return user, password
