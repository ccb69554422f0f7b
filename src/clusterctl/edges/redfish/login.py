"""Login to a BMC, without locking the account and without occupying its last session for nothing."""

from __future__ import annotations

import hashlib
import hmac
import logging
import secrets
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from clusterctl.edges.redfish.connection import BUSY, RedfishConnection, Reply
from clusterctl.edges.redfish.quirks import Quirks
from clusterctl.edges.redfish.timing import Timing
from clusterctl.fleet.errors import (
    AuthenticationError,
    BusyError,
    ClusterctlError,
    EdgeError,
    PasswordChangeError,
    PrivilegeError,
)
from clusterctl.formats.redfish.tree import ROOT, Answer, normal
from clusterctl.ports import BmcAddress, Deadline

log = logging.getLogger(__name__)

PASSWORD_CHANGE = "PasswordChangeRequired"  # noqa: S105 — the key of a message of the DMTF Base registry
_NO_FREE_SESSION = ("SessionLimitExceeded", "RAC0218")
"""Keys of messages: DMTF Base registry, Dell EEMI registry (iDRAC)."""
_PRIVILEGE = ("InsufficientPrivilege", "InsufficientPrivileges", "InsufficientPrivilegeForUser")
"""Keys of messages: DMTF Base registry, and what vendors write."""
_NO_FREE_SESSION_TEXTS = ("maximum number of sessions", "maximum number of user sessions")
"""Texts of firmware that sends the right message under another key, in lower case."""
_DOUBTFUL_TRIES = 2
"""Tries of each of two logins, where a rejection may be wrong: no BMC is known to reject right ones twice in a row."""
_NO_SESSIONS = (404, 405, 501)
"""Answers to a login at a BMC without sessions, whatever its root names."""
MAX_TOKEN = 4096
"""Characters of a session's token. BMCs' tokens have 20 to a few hundred; each is searched for in all that is kept."""
_DEFAULT_SESSIONS = f"{ROOT}/SessionService/Sessions"


class Rejections:
    """The credentials that BMCs have rejected in this run: they are not sent again, for BMCs lock accounts.

    Kept by BMC, user and password; of the password only a keyed digest. Thread-safe.
    """

    def __init__(self) -> None:
        self._key = secrets.token_bytes(32)
        self._seen: dict[tuple[str, int, str, bytes], str] = {}
        self._lock = threading.Lock()

    def check(self, address: BmcAddress) -> None:
        """Raise `AuthenticationError` where these credentials were rejected before."""
        with self._lock:
            message = self._seen.get(self._id(address))
        if message:
            raise AuthenticationError(
                f"{message}; no further login was tried in this run", remedy="correct the credentials, then run again"
            )

    def add(self, address: BmcAddress, message: str) -> None:
        """Record a rejection, with the BMC's message."""
        with self._lock:
            self._seen[self._id(address)] = message

    def knows(self, address: BmcAddress) -> bool:
        """Return whether these credentials were rejected."""
        with self._lock:
            return self._id(address) in self._seen

    def forget(self, address: BmcAddress) -> None:
        """Forget a rejection: the BMC was asked to accept these credentials, so they may be right from now on."""
        with self._lock:
            self._seen.pop(self._id(address), None)

    def _id(self, address: BmcAddress) -> tuple[str, int, str, bytes]:
        digest = hmac.digest(self._key, address.password.encode(), hashlib.sha256)
        return address.host, address.port, address.user, digest


@dataclass(frozen=True, slots=True)
class Opened:
    """A session: its token, a secret, and its path for the log-out (empty: unknown).

    Without a token the BMC has no sessions, and takes user and password with each request (DSP0266).
    """

    token: str
    location: str


@dataclass(frozen=True, slots=True)
class RedfishLogin:
    """Logs in to one BMC. `doubtful`: it is uncertain which of two passwords the BMC has."""

    connection: RedfishConnection
    address: BmcAddress
    timing: Timing
    rejections: Rejections
    doubtful: bool = False

    def open(self, service: Answer, quirks: Quirks, deadline: Deadline) -> Opened:
        """Log in to the BMC with the service root `service`.

        Raises `AuthenticationError` for rejected credentials, which are rejected for the whole run.
        """
        self.rejections.check(self.address)
        if _has_no_sessions(service):
            return Opened("", "")
        reply = self._post(service, deadline)
        tries = self._tries(quirks, deadline) if reply.status == 401 else 1
        for number in range(1, tries):
            doing = "waiting to log in again at a BMC that is known for wrong rejections"
            deadline.sleep(self.timing.busy * 2**number, doing)
            reply = self._post(service, deadline)
            if reply.status != 401:
                break
        token = reply.headers.get("x-auth-token", "")
        if len(token) > MAX_TOKEN:
            raise EdgeError(f"the BMC's session token has {len(token)} characters", remedy="update the BMC's firmware")
        if reply.status in (200, 201) and token:
            return Opened(token, _location(reply))
        if reply.status in _NO_SESSIONS:
            log.info(
                "%s: it opens no sessions (HTTP %s), so each request has the login", self.address.host, reply.status
            )
            return Opened("", "")
        raise self.rejected(reply) if reply.status == 401 else _login_error(reply, self.address.user)

    def rejected(self, reply: Reply) -> ClusterctlError:
        """Record that the credentials are wrong, for the whole run, and return the error."""
        error = _login_error(reply, self.address.user)
        if isinstance(error, AuthenticationError):
            self.rejections.add(self.address, error.message)
        return error

    def _post(self, service: Answer, deadline: Deadline) -> Reply:
        """Log in once; where all sessions are occupied, wait for a free one.

        A cancelled run still waits a while for the answer, which names the session to close: BMCs have few of them.
        """
        body = {"UserName": self.address.user, "Password": self.address.password}
        path = _sessions_path(service)
        with self.connection.answered(self.timing.logout_seconds(self.connection.stopwatch.slowest)):
            reply = self.connection.ask("POST", path, deadline, body=body)
            for number in range(1, self.timing.attempts):
                if not _no_free_session(reply):
                    break
                deadline.sleep(self.timing.busy_max * number, "waiting for a free session of the BMC")
                reply = self.connection.ask("POST", path, deadline, body=body)
        return reply

    def _tries(self, quirks: Quirks, deadline: Deadline) -> int:
        """Return the number of tries: one, more at vendors known for wrong rejections, always below the lock-out."""
        if quirks.login_tries == 1:
            return 1
        if self.doubtful:
            return _DOUBTFUL_TRIES
        service = self.connection.ask("GET", f"{ROOT}/AccountService", deadline).answer
        threshold = service.get("AccountLockoutThreshold") if isinstance(service, Mapping) else None
        if isinstance(threshold, int) and not isinstance(threshold, bool) and threshold > 0:
            return max(1, min(quirks.login_tries, threshold - 1))
        return quirks.login_tries


def factory_password(reply: Reply) -> PasswordChangeError:
    """Return the error for a BMC that refuses everything but a change of its password.

    The message's first argument names the account (DSP0266, "Password change required handling").
    """
    message = reply.message(PASSWORD_CHANGE)
    return PasswordChangeError(
        "the BMC accepts nothing until its factory password is changed",
        remedy="give it a password of the site: clusterctl accounts rotate",
        account=next(iter(message.arguments), "") if message is not None else "",
    )


def _login_error(reply: Reply, user: str) -> ClusterctlError:
    if reply.message(PASSWORD_CHANGE) is not None:
        return factory_password(reply)
    if lacks_privilege(reply):
        message = f"account {user} lacks the privilege Login: {reply.summary}"
        return PrivilegeError(message, remedy=f"give the BMC's account {user} the privilege Login")
    if reply.status in (401, 403):
        return AuthenticationError(
            f"the BMC rejects user name or password ({reply.summary})",
            remedy="check the credentials that the site file refers to; nothing was tried again",
        )
    if _no_free_session(reply):
        remedy = "close old sessions on the BMC, or wait until they time out"
        return EdgeError("the BMC has no free session", remedy=remedy)
    if reply.status in BUSY:
        return busy_error(reply)
    return EdgeError(f"the BMC opens no session: {reply.summary}")


_MANAGED_BY = (
    ("/redfish/v1/AccountService", "ConfigureUsers"),
    ("/redfish/v1/Managers", "ConfigureManager"),
    ("/redfish/v1/SessionService", "ConfigureManager"),
    ("/redfish/v1/UpdateService", "ConfigureComponents"),
)


def privilege_of(method: str, path: str) -> str:
    """Return the privilege that a request needs, by the DMTF's mapping (DSP8011); reads need `RedfishLogin`."""
    if method == "GET":
        return "Login"
    return next((name for prefix, name in _MANAGED_BY if path.startswith(prefix)), "ConfigureComponents")


def lacks_privilege(reply: Reply) -> bool:
    """Return whether the BMC refuses for a privilege that the account lacks, not for the login."""
    return reply.status == 403 and any(reply.message(key) is not None for key in _PRIVILEGE)


def busy_error(reply: Reply) -> BusyError:
    """Return the error for a BMC that was waited for and is still busy."""
    after = f", and asks to come back in {reply.retry_after:.0f} s" if reply.retry_after is not None else ""
    return BusyError(f"the BMC is busy{after}: {reply.summary}")


def _no_free_session(reply: Reply) -> bool:
    return any(
        message.key in _NO_FREE_SESSION or any(text in message.text.lower() for text in _NO_FREE_SESSION_TEXTS)
        for message in reply.messages
    )


def _has_no_sessions(service: Answer) -> bool:
    """Return whether the root names neither sessions nor a session service, which DSP0266 requires of it."""
    return isinstance(service, Mapping) and "SessionService" not in service and "Links" not in service


def _sessions_path(service: Answer) -> str:
    value: Any = service
    for key in ("Links", "Sessions", "@odata.id"):
        value = value.get(key) if isinstance(value, Mapping) else None
    return normal(value, f"{ROOT} Links.Sessions") if isinstance(value, str) else _DEFAULT_SESSIONS


def _location(login: Reply) -> str:
    """Return the session's path: HPE sends a whole URL, some BMCs send it in the body only."""
    location: Any = login.headers.get("location") or login.body.get("@odata.id")
    if not isinstance(location, str) or not location:
        log.warning("the BMC sends no location of its session: the session stays open until it times out")
        return ""
    return normal(urlsplit(location).path, "Location")
