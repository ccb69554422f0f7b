"""One address of a sweep: who answers there, asked as nobody first; then, with one login, which machine it is in.

At most `MAX_REQUESTS` requests, login and logout among them, where the BMC does not ask to be asked again. Nothing is
written but the session, which is always closed.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field, replace

from clusterctl.edges.redfish.login import Rejections
from clusterctl.edges.redfish.pins import KnownBmcs, presented
from clusterctl.edges.redfish.session import Session
from clusterctl.edges.redfish.timing import Timing
from clusterctl.fleet.bmc import Greeting, Identity, Outcome, Sighting
from clusterctl.fleet.errors import (
    AuthenticationError,
    CancelledError,
    ClusterctlError,
    EdgeError,
    EnvironmentBrokenError,
    UnreachableError,
    UntrustedError,
)
from clusterctl.formats.redfish.identity import is_service_root, next_path, read_greeting, read_identity
from clusterctl.formats.redfish.tree import ROOT, Answer, Unreadable
from clusterctl.ports import BmcAddress, Deadline
from clusterctl.ports.logins import Login, Logins


@dataclass(slots=True)
class _Bmc:
    lock: threading.Lock = field(default_factory=threading.Lock)
    rejected_at: str = ""


class Twins:
    """Thread-safe. A BMC is known by what it tells strangers: its UUID, else the machine's serial, else its address."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._bmcs: dict[str, _Bmc] = {}

    @contextmanager
    def turn(self, host: str, greeting: Greeting) -> Iterator[None]:
        """One login at a time for each BMC; `AuthenticationError` where it has rejected one already, at any address."""
        key = greeting.uuid or greeting.serial or host
        with self._lock:
            bmc = self._bmcs.setdefault(key, _Bmc())
        with bmc.lock:
            if bmc.rejected_at:
                message = f"the same BMC has rejected our login at {bmc.rejected_at}: not tried again in this run"
                raise AuthenticationError(message, remedy="correct the credentials, then sweep again")
            try:
                yield
            except AuthenticationError:
                bmc.rejected_at = host
                raise


log = logging.getLogger(__name__)

MAX_REQUESTS = 8
GREETING_SECONDS = 15.0
VISIT_SECONDS = 90.0
TIMING = Timing(attempts=2, busy=1.0, busy_max=5.0)
_ROOTS = 2
"""How often the root is asked for where it is refused to strangers: iLOs do so now and then."""


class Visitor:
    """Visits one address at each call; callable from many threads.

    `door`: how an address is reached, without user and password. Without `logins` nobody is logged in to. `known` has
    the pins of those that were believed.
    """

    def __init__(
        self, door: Callable[[str], BmcAddress], logins: Logins | None, known: KnownBmcs, *, timing: Timing = TIMING
    ) -> None:
        self._door = door
        self._logins = logins
        self._known = known
        self._timing = timing
        self._rejections = Rejections()
        self._twins = Twins()

    def __call__(self, host: str, deadline: Deadline) -> Sighting:
        """What is there; what goes wrong with one BMC, our own defects among it, is its outcome.

        Raises `CancelledError`, and `EnvironmentBrokenError` where this controller cannot go on.
        """
        visit = _Visit(host, self._timing, deadline.within(VISIT_SECONDS))
        try:
            address = visit.greet(self._door(host), self._known)
            if self._logins is None:
                return visit.ended(Outcome.NO_LOGIN)
            login = self._logins.login(host, visit.greeting)
            if login is None:
                return visit.ended(Outcome.NO_LOGIN, "no login of the site applies to it", "add one to bmc.logins")
            visit.identify(address, login, self._rejections, self._twins)
        except (CancelledError, EnvironmentBrokenError):
            raise
        except ClusterctlError as error:
            return visit.ended(_outcome_of(error), error.message, error.remedy)
        except Exception as error:
            log.exception("%s could not be looked at", host)
            remedy = "leave it out with --exclude, and report this with what stands on stderr"
            return visit.ended(Outcome.FAILED, f"clusterctl itself failed: {type(error).__name__}", remedy)
        if visit.identity.serial is None:
            remedy = "power the machine on once so that its BMC takes inventory, then sweep again"
            return visit.ended(Outcome.FAILED, "; ".join(visit.identity.problems), remedy)
        return visit.ended(Outcome.IDENTIFIED)


class _NoRedfishError(EdgeError):
    """What answers is something else."""


_OUTCOMES = {
    _NoRedfishError: Outcome.NO_REDFISH,
    UntrustedError: Outcome.CERTIFICATE_UNKNOWN,
    AuthenticationError: Outcome.REJECTED,
    UnreachableError: Outcome.NO_ANSWER,
}


def _outcome_of(error: ClusterctlError) -> Outcome:
    return next((outcome for kind, outcome in _OUTCOMES.items() if isinstance(error, kind)), Outcome.FAILED)


@dataclass(slots=True)
class _Visit:
    """What is known of one address so far."""

    host: str
    timing: Timing
    deadline: Deadline
    root: Answer = field(default_factory=lambda: Unreadable("HTTP 401 to a stranger"))
    greeting: Greeting = field(default_factory=Greeting)
    identity: Identity = field(default_factory=Identity)
    fingerprint: str = ""
    login: str = ""
    requests: int = 0

    def greet(self, address: BmcAddress, known: KnownBmcs) -> BmcAddress:
        """Find out who answers, without saying who we are; the address with whom to believe there.

        Raises `UntrustedError` for whom we may not log in to, `_NoRedfishError` for what is no BMC.
        """
        new = known.learns(address)
        if new:
            address = replace(address, fingerprint=presented(address, self.deadline))
        else:
            address, _ = known.trusted(address, self.deadline)
        self.fingerprint = address.fingerprint
        try:
            self._ask_root(address)
        except UntrustedError as error:
            self._look_at_stranger(address, error)
        if new:
            known.keep(self.host, address.fingerprint)
        return address

    def identify(self, address: BmcAddress, login: Login, rejections: Rejections, twins: Twins) -> None:
        """Log in once, read, log out."""
        self.login = login.name
        root = None if isinstance(self.root, Unreadable) else self.root
        address = replace(address, user=login.user, password=login.password)
        session = Session(address, self.deadline, self.timing, root, rejections=rejections, read_only=True)
        before = self.requests
        try:
            with closing(session):
                with twins.turn(self.host, self.greeting):
                    session.open(self.deadline)
                self._read(session)
        finally:
            self.requests = before + session.requests

    def ended(self, outcome: Outcome, cause: str = "", remedy: str = "") -> Sighting:
        return Sighting(
            self.host,
            outcome,
            self.greeting,
            self.identity,
            fingerprint=self.fingerprint,
            login=self.login,
            requests=self.requests,
            cause=cause,
            remedy=remedy,
        )

    def _ask_root(self, address: BmcAddress) -> None:
        """The service root, which DSP0266 has everybody see. To whom does not show it no login is sent."""
        deadline = self.deadline.within(GREETING_SECONDS)
        session = Session(replace(address, user="", password=""), deadline, self.timing, read_only=True)
        try:
            with closing(session):
                self.root = self._root_of(session, deadline)
        finally:
            self.requests += session.requests
        if isinstance(self.root, Unreadable) or not is_service_root(self.root):
            reason = self.root.reason if isinstance(self.root, Unreadable) else "its JSON is no service root"
            remedy = "if it is a BMC, switch its Redfish service on; else leave it out with --exclude"
            raise _NoRedfishError(f"what answers shows no Redfish service: {reason}", remedy=remedy)
        self.greeting = read_greeting(self.root)

    def _root_of(self, session: Session, deadline: Deadline) -> Answer:
        for _ in range(_ROOTS):
            try:
                return session.read(ROOT, deadline)
            except AuthenticationError:
                continue
            except (UntrustedError, UnreachableError):
                raise
            except EdgeError as error:
                raise _NoRedfishError(error.message, remedy=error.remedy) from error
        return self.root

    def _look_at_stranger(self, address: BmcAddress, error: UntrustedError) -> None:
        """Who it says it is, and its certificate, for a person to decide; raises `error` again. No secret is sent."""
        self.fingerprint = presented(address, self.deadline)
        self._ask_root(replace(address, fingerprint=self.fingerprint))
        raise error

    def _read(self, session: Session) -> None:
        """As much as the requests allow; what fails once the machine is known is a problem and no more."""
        answers: dict[str, Answer] = {ROOT: session.root}
        left = MAX_REQUESTS - self.requests - 1  # one is the logout
        while session.requests < left and (path := next_path(answers, self.host)) is not None:
            try:
                answers[path] = session.read(path, self.deadline)
            except EdgeError as error:
                self.identity = read_identity(answers, self.host)
                if self.identity.serial is None:
                    raise
                answers[path] = Unreadable(error.message)
                break
        self.identity = read_identity(answers, self.host)
