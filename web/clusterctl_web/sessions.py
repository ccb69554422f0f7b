"""Who is signed in: the sessions of this start of the service, and the bearer tokens of the API.

Sessions are kept in memory: a restart ends them. A session of a local user ends when the user is removed or gets a new
password; a changed role holds at once. The role of a user of an identity provider holds until the session ends.
"""

from __future__ import annotations

import enum
import hashlib
import hmac
import secrets
import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from clusterctl.fleet.access import PROVIDED, Identity, UserRole, WebUser
from clusterctl.fleet.secret import NeverPickled
from clusterctl.operations.operation import current_time
from clusterctl.ports.sign_in import IdentityProvider, WebAccounts

MOST_SESSIONS = 5000
MOST_OF_USER = 50
"""Sessions of one user; the oldest ends where a user signs in once more."""


class Proof(enum.Enum):
    """How an actor has proven who he is."""

    START = "start"
    PASSWORD = "password"  # noqa: S105 — the name of a proof
    PROVIDER = "provider"
    TOKEN = "token"  # noqa: S105 — likewise


@dataclass(frozen=True, slots=True, kw_only=True)
class Actor:
    """Who sends a request.

    name     as the journal has it
    csrf     what each form has to send; empty for a token
    jobs_of  the user of the scheduler whose jobs are the actor's own; empty for none
    """

    name: str
    role: UserRole
    proof: Proof
    csrf: str = field(default="", repr=False)
    jobs_of: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class StartToken(NeverPickled):
    """The secret of the address that the service prints on a loopback address: admin, until this start ends."""

    secret: str = field(repr=False)
    actor: str

    def matches(self, given: str) -> bool:
        return hmac.compare_digest(given.encode(), self.secret.encode())


@dataclass(frozen=True, slots=True, kw_only=True)
class SignInRules:
    """Who may come in, and by which names the page may be called.

    hosts   host names and addresses of the page: no foreign page reaches it through a name of its own
    tls     the page is served over TLS: cookies are sent over TLS only
    cookie  name of the session's cookie
    """

    accounts: WebAccounts
    provider: IdentityProvider | None = None
    start: StartToken | None = None
    hosts: tuple[str, ...] = ("localhost", "127.0.0.1", "[::1]")
    tls: bool = False
    cookie: str = "clusterctl"
    lifetime: timedelta = timedelta(hours=12)
    idle: timedelta = timedelta(minutes=60)
    clock: Callable[[], float] = time.monotonic

    @property
    def session_cookie(self) -> str:
        """The prefix binds the cookie to this host and to TLS (RFC 6265bis)."""
        return f"__Host-{self.cookie}" if self.tls else self.cookie


@dataclass(frozen=True, slots=True)
class _Session:
    actor: Actor
    begun: float
    seen: float
    stamp: datetime | None
    """When the local user's password was set."""


@dataclass
class UserSessions:
    """The sessions, by the digest of their cookie: what is in memory opens nothing. Thread-safe."""

    access: SignInRules
    _by_digest: OrderedDict[str, _Session] = field(default_factory=OrderedDict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def start(self) -> str:
        """Begin a session of the one who has the printed address; return the cookie."""
        if self.access.start is None:
            raise ValueError("this start has no token")
        return self._begin(Actor(name=self.access.start.actor, role=UserRole.ADMIN, proof=Proof.START), None)

    def of_user(self, user: WebUser) -> str:
        """Begin a session of a local user; return the cookie."""
        return self._begin(
            Actor(name=user.name, role=user.role, proof=Proof.PASSWORD, jobs_of=user.name), user.changed_at
        )

    def of_identity(self, identity: Identity) -> str:
        """Begin a session of a user of the identity provider; return the cookie."""
        own = identity.name.removeprefix(PROVIDED)
        return self._begin(Actor(name=identity.name, role=identity.role, proof=Proof.PROVIDER, jobs_of=own), None)

    def _begin(self, actor: Actor, stamp: datetime | None) -> str:
        cookie, now = secrets.token_urlsafe(32), self.access.clock()
        session = _Session(replace(actor, csrf=secrets.token_urlsafe(32)), now, now, stamp)
        with self._lock:
            own = [key for key, one in self._by_digest.items() if one.actor.name == actor.name]
            for key in own[: len(own) - MOST_OF_USER + 1]:
                del self._by_digest[key]
            while len(self._by_digest) >= MOST_SESSIONS:
                self._by_digest.popitem(last=False)
            self._by_digest[_digest(cookie)] = session
        return cookie

    def end(self, cookie: str) -> None:
        with self._lock:
            self._by_digest.pop(_digest(cookie), None)

    def find(self, cookie: str, *, used: bool = True) -> Actor | None:
        """Return the actor of a session; None where there is none, or it has ended. `used`: the session is not idle."""
        key, now = _digest(cookie), self.access.clock()
        with self._lock:
            session = self._by_digest.get(key)
            if session is None:
                return None
            actor = self._valid(session, now)
            if actor is None:
                del self._by_digest[key]
            elif used:
                self._by_digest[key] = replace(session, seen=now)
        return actor

    def _valid(self, session: _Session, now: float) -> Actor | None:
        access = self.access
        if now - session.begun >= access.lifetime.total_seconds() or now - session.seen >= access.idle.total_seconds():
            return None
        if session.actor.proof is not Proof.PASSWORD:
            return session.actor
        user = access.accounts.user(session.actor.name)
        if user is None or user.changed_at != session.stamp:
            return None
        return replace(session.actor, role=user.role)

    def bearer(self, secret: str) -> Actor | None:
        """Return the actor of a token of the API, or of the printed token; None where it is unknown or has expired."""
        start = self.access.start
        if start is not None and start.matches(secret):
            return Actor(name=start.actor, role=UserRole.ADMIN, proof=Proof.START)
        token = self.access.accounts.token(secret)
        if token is None or token.expired(current_time()):
            return None
        return Actor(name=f"token:{token.name}", role=token.role, proof=Proof.TOKEN, jobs_of=token.jobs_of)


def _digest(cookie: str) -> str:
    return hashlib.sha256(cookie.encode()).hexdigest()
