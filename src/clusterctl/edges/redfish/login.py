"""Opening a session, without locking the account and without taking the last session for nothing."""

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

from clusterctl.edges.redfish.connection import (
    Asker,
    Reply,
    account_to_change,
    answer_of,
    body_of,
    explanation,
    refusal,
)
from clusterctl.edges.redfish.quirks import Quirks
from clusterctl.edges.redfish.timing import Timing
from clusterctl.fleet.errors import AuthenticationError, ClusterctlError, EdgeError, PasswordChangeError
from clusterctl.formats.redfish.tree import ROOT, Answer, normal
from clusterctl.ports import BmcAddress, Deadline


class Rejections:
    """By BMC, user and password; of the password only a keyed digest is kept. Thread-safe."""

    def __init__(self) -> None:
        self._key = secrets.token_bytes(32)
        self._seen: dict[tuple[str, int, str, bytes], str] = {}
        self._lock = threading.Lock()

    def check(self, address: BmcAddress) -> None:
        """Raise `AuthenticationError` where these credentials were rejected before."""
        with self._lock:
            words = self._seen.get(self._id(address))
        if words:
            raise AuthenticationError(
                f"{words}; it was not asked again in this run", remedy="correct the credentials, then run again"
            )

    def add(self, address: BmcAddress, words: str) -> None:
        """These credentials are wrong, in the BMC's words."""
        with self._lock:
            self._seen[self._id(address)] = words

    def knows(self, address: BmcAddress) -> bool:
        """Whether these credentials were rejected."""
        with self._lock:
            return self._id(address) in self._seen

    def forget(self, address: BmcAddress) -> None:
        """These credentials may be right from now on: the BMC was asked to take them."""
        with self._lock:
            self._seen.pop(self._id(address), None)

    def _id(self, address: BmcAddress) -> tuple[str, int, str, bytes]:
        digest = hmac.digest(self._key, address.password.encode(), hashlib.sha256)
        return address.host, address.port, address.user, digest


log = logging.getLogger(__name__)

PASSWORD_CHANGE = "PasswordChangeRequired"  # noqa: S105 — the id of a message of the DMTF Base registry
_FULL = ("RAC0218", "SessionLimitExceeded", "maximum number of sessions", "maximum number of user sessions")
_DOUBTFUL_TRIES = 2
"""Of each of two logins, where a rejection may mean nothing: no BMC is known to reject right ones twice in a row."""
_DEFAULT_SESSIONS = f"{ROOT}/SessionService/Sessions"


@dataclass(frozen=True, slots=True)
class Opened:
    """A session: its token, a secret, and where it is to be deleted (empty: nobody knows). No token: this BMC knows no
    sessions, and wants user and password with each request, as DSP0266 has every service take them.
    """

    token: str
    location: str


@dataclass(frozen=True, slots=True)
class Login:
    """Logs in to one BMC, which has shown `service`, its root. `doubtful`: a rejection is as likely as not."""

    asker: Asker
    address: BmcAddress
    timing: Timing
    rejections: Rejections
    doubtful: bool = False

    def open(self, service: Answer, quirks: Quirks, deadline: Deadline) -> Opened:
        """Raises `AuthenticationError` for credentials that were rejected, once and for the whole run."""
        self.rejections.check(self.address)
        if _knows_no_sessions(service):
            return Opened("", "")
        reply = self._post(service, deadline)
        tries = self._tries(quirks, deadline) if reply.status == 401 else 1
        for number in range(1, tries):
            deadline.sleep(self.timing.busy * 2**number, "waiting to log in again at a BMC known for wrong rejections")
            reply = self._post(service, deadline)
            if reply.status != 401:
                break
        token = reply.headers.get("x-auth-token", "")
        if reply.status in (200, 201) and token:
            return Opened(token, _location(reply))
        raise self.rejected(reply) if reply.status == 401 else login_error(reply)

    def rejected(self, reply: Reply) -> ClusterctlError:
        """The credentials are wrong; for the whole run."""
        error = login_error(reply)
        self.rejections.add(self.address, error.message)
        return error

    def _post(self, service: Answer, deadline: Deadline) -> Reply:
        """One log-in; where all sessions are taken, it waits for one to come free."""
        body = {"UserName": self.address.user, "Password": self.address.password}
        path = _sessions_path(service)
        reply = self.asker.ask("POST", path, deadline, body=body)
        for number in range(1, self.timing.attempts):
            if not _full(reply):
                break
            deadline.sleep(self.timing.busy_max * number, "waiting for a free session of the BMC")
            reply = self.asker.ask("POST", path, deadline, body=body)
        return reply

    def _tries(self, quirks: Quirks, deadline: Deadline) -> int:
        """How often to try in all: once, but for vendors whose rejections may mean nothing; never to the lock-out."""
        if quirks.login_tries == 1:
            return 1
        if self.doubtful:
            return _DOUBTFUL_TRIES
        told = answer_of(self.asker.ask("GET", f"{ROOT}/AccountService", deadline))
        threshold = told.get("AccountLockoutThreshold") if isinstance(told, Mapping) else None
        if isinstance(threshold, int) and not isinstance(threshold, bool) and threshold > 0:
            return max(1, min(quirks.login_tries, threshold - 1))
        return quirks.login_tries


def login_error(reply: Reply) -> ClusterctlError:
    """Why there is no session, by the BMC's answer to a log-in."""
    words = explanation(reply)
    if PASSWORD_CHANGE in words:
        return factory_password(reply)
    if reply.status in (401, 403):
        return AuthenticationError(
            f"the BMC rejects user name or password ({refusal(reply)})",
            remedy="check the credentials that the site file refers to; nothing was tried again",
        )
    if _full(reply):
        return EdgeError(
            "the BMC has no free session", remedy="close old sessions on the BMC, or wait until they time out"
        )
    return EdgeError(f"the BMC opens no session: {refusal(reply)}")


def factory_password(reply: Reply) -> PasswordChangeError:
    """What a BMC says to everything but a change of its password."""
    return PasswordChangeError(
        "the BMC does nothing before its factory password is changed",
        remedy="give it a password of the site's: clusterctl accounts rotate",
        account=account_to_change(reply),
    )


def _full(reply: Reply) -> bool:
    words = explanation(reply).lower() if reply.status >= 300 else ""
    return any(sign.lower() in words for sign in _FULL)


def _knows_no_sessions(service: Answer) -> bool:
    """Its root names neither sessions nor a service for them, which DSP0266 has it name."""
    return isinstance(service, Mapping) and "SessionService" not in service and "Links" not in service


def _sessions_path(service: Answer) -> str:
    told: Any = service
    for key in ("Links", "Sessions", "@odata.id"):
        told = told.get(key) if isinstance(told, Mapping) else None
    return normal(told, f"{ROOT} Links.Sessions") if isinstance(told, str) else _DEFAULT_SESSIONS


def _location(login: Reply) -> str:
    """Where the session is to be deleted: HPE writes a whole URL, some write it in the body only."""
    told: Any = login.headers.get("location") or body_of(login).get("@odata.id")
    if not isinstance(told, str) or not told:
        log.warning("the BMC does not tell where its session is: it stays open until it times out")
        return ""
    return normal(urlsplit(told).path, "Location")
