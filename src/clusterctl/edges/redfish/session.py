"""One Redfish session: logged in once, renewed once the BMC has ended it, always closed."""

from __future__ import annotations

import logging
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from clusterctl.edges.redaction import Redaction
from clusterctl.edges.redfish.budget import ReadBudget, ReadLimits
from clusterctl.edges.redfish.connection import BUSY, Body, Method, RedfishConnection, Reply
from clusterctl.edges.redfish.login import (
    PASSWORD_CHANGE,
    RedfishLogin,
    Rejections,
    busy_error,
    factory_password,
    lacks_privilege,
    privilege_of,
)
from clusterctl.edges.redfish.quirks import STANDARD, Quirks, quirks_of_root
from clusterctl.edges.redfish.timing import Timing
from clusterctl.edges.redfish.transport import NoAnswerError
from clusterctl.edges.redfish.upload import Upload
from clusterctl.fleet.errors import (
    AuthenticationError,
    ClusterctlError,
    EdgeError,
    OutcomeUnknownError,
    PasswordChangeError,
    PrivilegeError,
    UnreachableError,
)
from clusterctl.formats.redfish.tree import EXPANDED, ROOT, Answer, Answers, ReadRequest, Unreadable
from clusterctl.ports import BmcAddress, Deadline

log = logging.getLogger(__name__)
T = TypeVar("T")

_MAX_ETAGS = 5000
_LONGEST_ETAG = 4000
"""Characters of a path and its ETag together; a longer one is not kept."""
_CLOSED = (200, 202, 204, 404)
_FAILURES = 2
_NOT_EXPANDED = Unreadable("not asked for: this BMC failed at $expand before")


class Expansions:
    """Remembers which BMCs have failed an `$expand`: they are asked the plain way for the rest of the run. Thread-safe.

    Two refusals are enough, or one answer that never came.
    """

    def __init__(self) -> None:
        self._failures: Counter[tuple[str, int]] = Counter()
        self._lock = threading.Lock()

    def usable(self, address: BmcAddress) -> bool:
        """Return whether this BMC is asked that way."""
        with self._lock:
            return self._failures[address.host, address.port] < _FAILURES

    def failed(self, address: BmcAddress, *, hung: bool) -> None:
        """Record one failure."""
        with self._lock:
            self._failures[address.host, address.port] += _FAILURES if hung else 1


@dataclass(frozen=True, slots=True)
class RedfishAccess:
    """What all sessions of a run share.

    rejections   the credentials that BMCs have rejected
    expansions   the BMCs that cannot do the `$expand` that they offer
    read_only    sends nothing but reads, logins and log-outs
    limits       how much is read of one BMC in one walk
    """

    timing: Timing = field(default_factory=Timing)
    rejections: Rejections = field(default_factory=Rejections)
    expansions: Expansions = field(default_factory=Expansions)
    read_only: bool = False
    limits: ReadLimits = field(default_factory=ReadLimits)

    def open(
        self, address: BmcAddress, deadline: Deadline, *, for_accounts: bool = False
    ) -> tuple[RedfishSession, bool]:
        """Return an open session, and whether it needed the address's former credentials.

        The former ones are tried only where the BMC rejects the others: one wrong try (two at BMCs known for wrong
        rejections), once in a run, then a right one. `for_accounts`: also at a BMC that opens no session before its
        password is changed.
        """
        doubtful = address.former is not None
        try:
            return self._open(address, deadline, doubtful=doubtful, for_accounts=for_accounts), False
        except PasswordChangeError:
            raise
        except AuthenticationError:
            if address.former is None or not self.rejections.knows(address):
                raise
        user, password = address.former
        former = replace(address, user=user, password=password, former=None)
        session = self._open(former, deadline, doubtful=doubtful, for_accounts=for_accounts)
        session.redact.add([address.password])
        return session, True

    def _open(self, address: BmcAddress, deadline: Deadline, *, doubtful: bool, for_accounts: bool) -> RedfishSession:
        session = RedfishSession(address, deadline, self, doubtful=doubtful)
        try:
            try:
                session.open(deadline)
            except PasswordChangeError:
                if not for_accounts:
                    raise
                session.open_without_session(deadline)
        except BaseException:
            session.close()
            raise
        return session


class RedfishSession:
    """`open` logs in, `close` logs out; in between `read`, `walk` and `write`. `redact` takes its secrets out of texts.

    `logins` counts the logins of this session: what was proven after one login holds until the next. `root` is the
    service root where it was read already.
    """

    def __init__(
        self,
        address: BmcAddress,
        deadline: Deadline,
        access: RedfishAccess,
        root: Mapping[str, Any] | None = None,
        *,
        doubtful: bool = False,
    ) -> None:
        self._address = address
        self._timing = access.timing
        self._expansions = access.expansions
        self._read_only = access.read_only
        self._connection = RedfishConnection(address, deadline, access.timing)
        self._login = RedfishLogin(self._connection, address, access.timing, access.rejections, doubtful)
        self._location = ""
        self._answered = False
        self._basic = False
        self._etags: dict[str, str] = {}
        self._limits = access.limits
        self._budget: ReadBudget | None = None
        self.quirks: Quirks = STANDARD
        self.root: Answer = root or Unreadable("not read yet")
        self.logins = 0
        self.redact = Redaction([address.password])

    @property
    def requests(self) -> int:
        """Number of requests sent, whatever their outcome."""
        return self._connection.sent

    @property
    def certificate(self) -> str:
        """SHA-256 of the certificate that the BMC proved to have; empty without TLS, and before the first request."""
        return self._connection.certificate

    def open(self, deadline: Deadline) -> str:
        """Log in and return the session's token, a secret. `close` is required also when this fails.

        A rejected password is never tried again (lock-out).
        """
        service = self._service(deadline) if isinstance(self.root, Unreadable) else self.root
        self.quirks = quirks_of_root(service)
        token = self._enter(service, deadline)
        self.root = self.read(ROOT, deadline) if isinstance(service, Unreadable) else service
        self.quirks = quirks_of_root(self.root)
        return token

    def open_without_session(self, deadline: Deadline) -> None:
        """Send user and password with each request: for a BMC that opens no session before its password is changed,
        and for that change only.
        """
        self._connection.use_basic(self._address)
        self._basic = self._answered = True
        self.logins += 1
        self.root = self.read(ROOT, deadline)
        self.quirks = quirks_of_root(self.root)

    def close(self) -> None:
        """Log out: BMCs have few sessions. A failure is logged; nothing else can be done about it."""
        try:
            self._leave(Deadline.after(self._logout_seconds))
        finally:
            self._connection.use_token(None)
            self._connection.close()

    def read(self, path: str, deadline: Deadline) -> Answer:
        """Return one resource. What this BMC refuses or garbles is `Unreadable`; a lost BMC is an error."""
        return self._expanded(path, deadline) if EXPANDED in path else self._read(path, deadline)

    def _expanded(self, path: str, deadline: Deadline) -> Answer:
        """Return a collection with its members; `Unreadable` where the BMC fails: it is then asked the plain way."""
        if not self._expansions.usable(self._address):
            return _NOT_EXPANDED
        limit = deadline.within(self._timing.expand)
        try:
            answer = self._read(path, limit)
        except UnreachableError as error:
            if deadline.remaining <= 0:
                raise
            self._expansions.failed(self._address, hung=True)
            log.info("%s: no answer to $expand, so it is asked the plain way: %s", self._address.host, error.message)
            return Unreadable(error.message)
        if isinstance(answer, Unreadable):
            self._expansions.failed(self._address, hung=False)
        return answer

    def _read(self, path: str, deadline: Deadline) -> Answer:
        reply = self._get(path, deadline)
        if reply.status == 401 and self._basic:
            raise self._login.rejected(reply)
        if reply.status == 401:
            self.renew(deadline)
            reply = self._get(path, deadline)
        if reply.status == 401:
            raise AuthenticationError("the BMC ended our session", remedy="run the step again")
        if reply.status == 403 and reply.message(PASSWORD_CHANGE) is not None:
            raise factory_password(reply)
        self._answered = True
        self._keep_etag(path, reply.headers.get("etag", ""))
        if lacks_privilege(reply):
            privilege = privilege_of("GET", path)
            reason = f"account {self._address.user} lacks the privilege {privilege}: {reply.summary}"
            return Unreadable(reason, lacks=privilege)
        return reply.answer

    def _keep_etag(self, path: str, etag: str) -> None:
        """Keep the newest ones: a BMC decides how many there are, and how long."""
        self._etags.pop(path, None)
        if len(path) + len(etag) <= _LONGEST_ETAG:
            self._etags[path] = etag
        if len(self._etags) > _MAX_ETAGS:
            del self._etags[next(iter(self._etags))]

    def etag(self, path: str) -> str:
        """Return the `ETag` header of the last answer for this path; empty where it had none."""
        return self._etags.get(path, "")

    def walk(self, ask: Callable[[Answers], T | ReadRequest], deadline: Deadline) -> tuple[T, Answers]:
        """Read the resources that `ask` requests until it returns its result; return that and all answers.

        Raises `ParseError` where they are more than one BMC has.
        """
        answers: dict[str, Answer] = {ROOT: self.root}
        with self.limited(self._limits) as budget:
            while True:
                with budget.parsing():
                    found = ask(answers)
                if not isinstance(found, ReadRequest):
                    return found, answers
                budget.plan(len(found.paths))
                for path in found.paths:
                    answers[path] = self.read(path, deadline)

    @contextmanager
    def limited(self, limits: ReadLimits) -> Iterator[ReadBudget]:
        """Count what is read in the block; reading beyond a limit is a `ParseError`."""
        self._budget = budget = ReadBudget(limits)
        try:
            yield budget
        finally:
            self._budget = None

    def write(self, path: str, body: Body, deadline: Deadline, *, method: Method = "POST", if_match: str = "") -> Reply:
        """Send one request that changes something, once. The caller reads whether the change came about (`Writer`).

        A 401 means that nothing was done: the same request is sent again before the session is given up. A lost answer
        is `OutcomeUnknownError`. Raises where the session only reads.
        """
        self._require_writing(method, path)
        try:
            for _ in range(1 if self._basic else max(2, self.quirks.login_tries)):
                reply = self._connection.send(method, path, deadline, body=body, if_match=if_match)
                if reply.status != 401:
                    break
        except NoAnswerError as error:
            raise OutcomeUnknownError(error.message, remedy="look at the machine before you try again") from error
        self._answered = self._answered or reply.status != 401
        if lacks_privilege(reply):
            privilege = privilege_of(method, path)
            remedy = f"give the BMC's account {self._address.user} the privilege {privilege}"
            message = f"account {self._address.user} lacks the privilege {privilege}: {reply.summary}"
            raise PrivilegeError(message, where=path, remedy=remedy)
        return reply

    def upload(self, path: str, upload: Upload, deadline: Deadline) -> Reply:
        """Send a file once, under the same terms as `write`; its sender judges a 401, after a reading."""
        self._require_writing("POST", path)
        try:
            return self._connection.upload(path, upload, deadline)
        except NoAnswerError as error:
            raise OutcomeUnknownError(error.message, remedy="look at the machine before you try again") from error

    def _require_writing(self, method: Method, path: str) -> None:
        if self._read_only:
            remedy = "run it without --read-only where the machine may be changed"
            raise EdgeError(f"this run only reads: {method} was not sent", where=path, remedy=remedy)

    def renew(self, deadline: Deadline) -> None:
        """Log in again after the BMC ended the session. A session that never answered anything is not renewed."""
        if not self._answered:
            raise AuthenticationError("the BMC opens a session and then rejects it", remedy="reset the BMC")
        log.info("%s: the BMC ended our session, logging in again", self._address.host)
        before = self._location
        closed = self._leave(deadline.within(self._logout_seconds))
        self._enter(self.root, deadline)
        if not closed:  # the BMC may still count the old session: the new one may be allowed to close it
            self._delete(before, deadline.within(self._logout_seconds))

    def _service(self, deadline: Deadline) -> Answer:
        """Return the service root without a login; `Unreadable` at BMCs that show it to users only."""
        reply = self._connection.ask("GET", f"{ROOT}/", deadline)
        if reply.status in BUSY:
            raise busy_error(reply)
        if reply.status not in (200, 401):
            raise EdgeError(f"no Redfish service: HTTP {reply.status}", remedy="check that this is a BMC's address")
        return reply.answer

    def _get(self, path: str, deadline: Deadline) -> Reply:
        """Read. A rejected read is repeated before the session is given up: a token is no password."""
        keep = self.quirks.keep_alive
        target = f"{ROOT}/" if path == ROOT else path
        reply = self._connection.ask("GET", target, deadline, keep=keep)
        for _ in range(0 if self._basic else max(1, self.quirks.login_tries - 1)):
            if reply.status != 401:
                break
            deadline.sleep(self._timing.busy, "waiting to repeat a read after the BMC rejected the session")
            reply = self._connection.ask("GET", target, deadline, keep=keep)
        if self._budget is not None:
            self._budget.add(reply.content, sum(len(name) + len(text) for name, text in reply.headers.items()))
        return reply

    def _enter(self, service: Answer, deadline: Deadline) -> str:
        self._connection.use_token(None)  # some BMCs refuse a login that carries the token of an ended session
        opened = self._login.open(service, self.quirks, deadline)
        self._basic = not opened.token
        if self._basic:
            self._connection.use_basic(self._address)
        else:
            self._connection.use_token(opened.token)
        self._location, self._answered = opened.location, False
        self.logins += 1
        self.redact.add([opened.token])
        return opened.token

    @property
    def _logout_seconds(self) -> float:
        return self._timing.logout_seconds(self._connection.stopwatch.slowest)

    def _leave(self, deadline: Deadline) -> bool:
        location, self._location = self._location, ""
        return self._delete(location, deadline)

    def _delete(self, location: str, deadline: Deadline) -> bool:
        """Delete a session; return whether the BMC confirms that it is gone. A failure is logged."""
        try:
            status = self._connection.ask("DELETE", location, deadline).status if location else 404
        except ClusterctlError as error:
            log.warning("%s: the session could not be closed: %s", self._address.host, error.message)
            return False
        if status not in (*_CLOSED, 401):
            log.warning("%s: the BMC did not close our session: HTTP %s", self._address.host, status)
        return status in _CLOSED
