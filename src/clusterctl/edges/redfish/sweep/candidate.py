"""Probes one candidate of a sweep: which BMC answers there, asked without a login first; then, with one login, which
machine it belongs to.

At most `MAX_REQUESTS` requests, login and log-out among them, where the BMC does not ask for repetition. Nothing is
written but the session, which is always closed.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field, replace

from clusterctl.edges.redfish.budget import ReadLimits
from clusterctl.edges.redfish.pins import KnownBmcs, presented
from clusterctl.edges.redfish.session import RedfishAccess, RedfishSession
from clusterctl.edges.redfish.timing import Timing
from clusterctl.fleet.bmc.observation import BmcObservation, Greeting, Identity, SweepOutcome
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

log = logging.getLogger(__name__)

MAX_REQUESTS = 8
ROOT_SECONDS = 15.0
PROBE_SECONDS = 90.0
TIMING = Timing(attempts=2, busy=1.0, busy_max=5.0, asked_max=10.0)
LIMITS = ReadLimits(size=4 << 20, values=100_000)
"""Of all that one address sends: any device may answer there."""
_LOCK_SECONDS = 0.5
_ROOT_TRIES = 2
"""Requests for the root where it is refused without a login: iLOs refuse it now and then."""


@dataclass(slots=True)
class _Bmc:
    lock: threading.Lock = field(default_factory=threading.Lock)
    rejected_at: str = ""


class LoginLimiter:
    """Counts logins by BMC, as its lock-out does: one BMC may answer at several addresses. Thread-safe.

    It is one BMC where an authority certifies one key for both addresses, and the claimed identity is the same. The
    identity alone proves nothing: a hostile BMC may claim another one's. A certificate that no authority signed does
    not either: vendors ship whole series with one key, which every owner of such a BMC can read out of its firmware.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._bmcs: dict[tuple[str, str], _Bmc] = {}

    @contextmanager
    def login(self, host: str, certificate: str, greeting: Greeting, deadline: Deadline) -> Iterator[None]:
        """Allow one login at a time for each BMC; `AuthenticationError` where it rejected one at any address.

        `certificate` is the SHA-256 of the one that an authority certified; empty: the address identifies the BMC.
        """
        identity = greeting.uuid or greeting.serial or host
        key = (certificate, identity) if certificate else ("", host)
        with self._lock:
            bmc = self._bmcs.setdefault(key, _Bmc())
        with _alone(bmc.lock, deadline):
            if bmc.rejected_at:
                message = f"the same BMC has rejected our login at {bmc.rejected_at}: not tried again in this run"
                raise AuthenticationError(message, remedy="correct the credentials, then sweep again")
            try:
                yield
            except AuthenticationError:
                bmc.rejected_at = host
                raise


@contextmanager
def _alone(lock: threading.Lock, deadline: Deadline) -> Iterator[None]:
    """Hold the lock. Raises as `Deadline.check` where another thread holds it for too long."""
    while not lock.acquire(timeout=min(_LOCK_SECONDS, deadline.remaining)):
        deadline.check("waiting for the login at another address of the same BMC")
    try:
        yield
    finally:
        lock.release()


class CandidateProbe:
    """Probes one address at each call. Thread-safe.

    `address_of` returns how a host is reached, without user and password. Without `logins` it logs in to no BMC.
    `known` has the certificates that were pinned on first use.
    """

    def __init__(
        self,
        address_of: Callable[[str], BmcAddress],
        logins: Logins | None,
        known: KnownBmcs,
        *,
        timing: Timing = TIMING,
    ) -> None:
        self._address_of = address_of
        self._logins = logins
        self._known = known
        self._access = RedfishAccess(timing, read_only=True)
        self._limiter = LoginLimiter()

    def __call__(self, host: str, deadline: Deadline) -> BmcObservation:
        """Return what is there. What fails with one BMC, our own defects among it, is its outcome.

        Raises `CancelledError`, and `EnvironmentBrokenError` where this controller cannot go on.
        """
        candidate = _Candidate(host, self._access, deadline.within(PROBE_SECONDS))
        try:
            return self._probe(host, candidate)
        except (CancelledError, EnvironmentBrokenError):
            raise
        except ClusterctlError as error:
            return candidate.result(_outcome_of(error), error.message, error.remedy)
        except Exception as error:
            log.exception("%s could not be probed", host)
            remedy = "leave it out with --exclude, and report this with the output on stderr"
            return candidate.result(SweepOutcome.FAILED, f"clusterctl itself failed: {type(error).__name__}", remedy)

    def _probe(self, host: str, candidate: _Candidate) -> BmcObservation:
        """Return what is there. A device that its service root shows to be no machine gets no login."""
        address = candidate.greet(self._address_of(host), self._known)
        if candidate.greeting.kind:
            return candidate.other_device(candidate.greeting.kind)
        if self._logins is None:
            return candidate.result(SweepOutcome.NO_LOGIN)
        login = self._logins.login(host, candidate.greeting)
        if login is None:
            return candidate.result(
                SweepOutcome.NO_LOGIN, "no login of the site applies to it", "add one to bmc.logins"
            )
        candidate.identify(address, login, self._limiter)
        return candidate.identified()


class _NoRedfishError(EdgeError):
    """What answers is no Redfish service."""


_OUTCOMES = {
    _NoRedfishError: SweepOutcome.NO_REDFISH,
    UntrustedError: SweepOutcome.CERTIFICATE_UNKNOWN,
    AuthenticationError: SweepOutcome.REJECTED,
    UnreachableError: SweepOutcome.NO_ANSWER,
}


def _outcome_of(error: ClusterctlError) -> SweepOutcome:
    return next((outcome for kind, outcome in _OUTCOMES.items() if isinstance(error, kind)), SweepOutcome.FAILED)


@dataclass(slots=True)
class _Candidate:
    """What is known of one address so far. `certificate`: SHA-256 of the one that it proved to have."""

    host: str
    access: RedfishAccess
    deadline: Deadline
    root: Answer = field(default_factory=lambda: Unreadable("HTTP 401 without a login"))
    greeting: Greeting = field(default_factory=Greeting)
    identity: Identity = field(default_factory=Identity)
    fingerprint: str = ""
    certificate: str = ""
    login: str = ""
    requests: int = 0

    def greet(self, address: BmcAddress, known: KnownBmcs) -> BmcAddress:
        """Read the service root without a login; return the address with the certificate that is trusted there.

        Raises `UntrustedError` where no login may be sent, `_NoRedfishError` for what is no BMC.
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
            self._describe_untrusted(address, error)
        if new:
            known.keep(self.host, address.fingerprint)
        return address

    def identify(self, address: BmcAddress, login: Login, limiter: LoginLimiter) -> None:
        """Log in once, read, log out: to the BMC that showed the service root, and to no other."""
        self.login = login.name
        certified = "" if address.fingerprint else self.certificate
        root = None if isinstance(self.root, Unreadable) else self.root
        address = replace(address, user=login.user, password=login.password, fingerprint=self.certificate)
        session = RedfishSession(address, self.deadline, self.access, root)
        before = self.requests
        try:
            with closing(session), session.limited(LIMITS):
                with limiter.login(self.host, certified, self.greeting, self.deadline):
                    session.open(self.deadline)
                self._read(session)
        finally:
            self.requests = before + session.requests

    def identified(self) -> BmcObservation:
        """Return the observation after the login."""
        if self.identity.kind:
            return self.other_device(self.identity.kind)
        if self.identity.serial is None:
            remedy = "power the machine on once so that its BMC takes inventory, then sweep again"
            return self.result(SweepOutcome.FAILED, "; ".join(self.identity.problems), remedy)
        return self.result(SweepOutcome.IDENTIFIED)

    def other_device(self, kind: str) -> BmcObservation:
        """Return the observation of what is no machine of a fleet: it is in no sheet, and no node."""
        remedy = "nothing has to be done; leave it out of later sweeps with --exclude"
        return self.result(SweepOutcome.OTHER_DEVICE, f"a {kind} answers", remedy)

    def result(self, outcome: SweepOutcome, cause: str = "", remedy: str = "") -> BmcObservation:
        """Return the observation with this outcome."""
        return BmcObservation(
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
        """Read the service root, which DSP0266 requires to be public. A BMC that hides it gets no login."""
        deadline = self.deadline.within(ROOT_SECONDS)
        session = RedfishSession(replace(address, user="", password=""), deadline, self.access)
        try:
            with closing(session), session.limited(LIMITS):
                self.root = self._root_of(session, deadline)
        finally:
            self.certificate = session.certificate
            self.requests += session.requests
        if isinstance(self.root, Unreadable) or not is_service_root(self.root):
            reason = self.root.reason if isinstance(self.root, Unreadable) else "its JSON is no service root"
            remedy = "if it is a BMC, switch its Redfish service on; else leave it out with --exclude"
            raise _NoRedfishError(f"what answers shows no Redfish service: {reason}", remedy=remedy)
        self.greeting = read_greeting(self.root)

    def _root_of(self, session: RedfishSession, deadline: Deadline) -> Answer:
        for _ in range(_ROOT_TRIES):
            try:
                return session.read(ROOT, deadline)
            except AuthenticationError:
                continue
            except (UntrustedError, UnreachableError):
                raise
            except EdgeError as error:
                raise _NoRedfishError(error.message, remedy=error.remedy) from error
        return self.root

    def _describe_untrusted(self, address: BmcAddress, error: UntrustedError) -> None:
        """Read its certificate and service root, for the operator to decide; raise `error` again. No secret is sent."""
        self.fingerprint = presented(address, self.deadline)
        self._ask_root(replace(address, fingerprint=self.fingerprint))
        raise error

    def _read(self, session: RedfishSession) -> None:
        """Read as much as the requests allow; what fails once the machine is identified is a problem and no error."""
        answers: dict[str, Answer] = {ROOT: session.root}
        left = MAX_REQUESTS - self.requests - 1  # one is the log-out
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
