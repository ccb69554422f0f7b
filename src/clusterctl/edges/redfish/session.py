"""One Redfish session: logged in once, renewed once the BMC has ended it, always closed."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from clusterctl.edges.redaction import Redaction
from clusterctl.edges.redfish.connection import Asker, Body, Library, Method, Reply, answer_of, explanation
from clusterctl.edges.redfish.login import PASSWORD_CHANGE, Login, Rejections, factory_password
from clusterctl.edges.redfish.quirks import STANDARD, Quirks, quirks_of_root
from clusterctl.edges.redfish.timing import Timing
from clusterctl.edges.redfish.transport import NoAnswerError
from clusterctl.edges.redfish.upload import Upload
from clusterctl.fleet.errors import AuthenticationError, ClusterctlError, EdgeError, OutcomeUnknownError, ParseError
from clusterctl.formats.redfish.tree import ROOT, Answer, Answers, Unreadable, Wanted
from clusterctl.ports import BmcAddress, Deadline

__all__ = ["Session", "Timing"]

log = logging.getLogger(__name__)
T = TypeVar("T")

_MAX_RESOURCES = 5000
_CLOSED = (200, 202, 204, 404)


class Session:
    """`open` logs in, `close` logs out; in between `read`, `walk` and `write`. `redact` takes its secrets out of texts.

    `logins` counts the sessions that this one was: what was proven in one holds in that one only. `root` is the service
    root where somebody has read it already; `rejections` is shared by all sessions of a run. With `read_only` nothing
    is ever sent but reads, the log-in and the log-out.
    """

    def __init__(
        self,
        address: BmcAddress,
        deadline: Deadline,
        timing: Timing,
        root: Mapping[str, Any] | None = None,
        *,
        rejections: Rejections | None = None,
        read_only: bool = False,
        doubtful: bool = False,
    ) -> None:
        self._address = address
        self._timing = timing
        self._read_only = read_only
        self._library = Library(address, deadline)
        self._asker = Asker(self._library, timing)
        self._login = Login(self._asker, address, timing, rejections or Rejections(), doubtful)
        self._location = ""
        self._answered = False
        self._basic = False
        self._etags: dict[str, str] = {}
        self.quirks: Quirks = STANDARD
        self.root: Answer = root or Unreadable("not read yet")
        self.logins = 0
        self.redact = Redaction([address.password])

    @property
    def requests(self) -> int:
        """How many were sent, whatever became of them."""
        return self._library.sent

    def open(self, deadline: Deadline) -> str:
        """Log in and return the session's token, a secret; `close` is due also when this fails.

        A rejected password is never tried again (lock-out).
        """
        service = self._service(deadline) if isinstance(self.root, Unreadable) else self.root
        self.quirks = quirks_of_root(service)
        token = self._enter(service, deadline)
        self.root = self.read(ROOT, deadline) if isinstance(service, Unreadable) else service
        self.quirks = quirks_of_root(self.root)
        return token

    def do_without(self, deadline: Deadline) -> None:
        """User and password with each request: for a BMC that opens no session before its password is changed, and for
        that change only.
        """
        self._library.use_basic(self._address)
        self._basic = self._answered = True
        self.logins += 1
        self.root = self.read(ROOT, deadline)
        self.quirks = quirks_of_root(self.root)

    def close(self) -> None:
        """Give the session back: BMCs hold few. A failure is logged, for there is nothing else left to do."""
        try:
            self._leave(Deadline.after(self._patience))
        finally:
            self._library.use_token(None)
            self._library.close()

    def read(self, path: str, deadline: Deadline) -> Answer:
        """One resource. What this BMC refuses or garbles is `Unreadable`; a BMC that is gone is an error."""
        reply = self._get(path, deadline)
        if reply.status == 401 and self._basic:
            raise self._login.rejected(reply)
        if reply.status == 401:
            self.renew(deadline)
            reply = self._get(path, deadline)
        if reply.status == 401:
            raise AuthenticationError("the BMC ended our session", remedy="run the step again")
        if reply.status == 403 and PASSWORD_CHANGE in explanation(reply):
            raise factory_password(reply)
        self._answered = True
        self._etags[path] = reply.headers.get("etag", "")
        return answer_of(reply)

    def etag(self, path: str) -> str:
        """The `ETag` header of the last answer for this path; empty where it had none."""
        return self._etags.get(path, "")

    def walk(self, ask: Callable[[Answers], T | Wanted], deadline: Deadline) -> tuple[T, Answers]:
        """Read what `ask` wants until it has its answer; that, and all that was read for it."""
        answers: dict[str, Answer] = {ROOT: self.root}
        while isinstance(found := ask(answers), Wanted):
            if len(answers) + len(found.paths) > _MAX_RESOURCES:
                raise ParseError(f"the BMC lists more than {_MAX_RESOURCES} resources")
            for path in found.paths:
                answers[path] = self.read(path, deadline)
        return found, answers

    def write(self, path: str, body: Body, deadline: Deadline, *, method: Method = "POST", if_match: str = "") -> Reply:
        """One request that changes something, sent once. Whoever sends it looks whether it came about (`Writer`).

        A 401 means that nothing was done: the same is sent again before the session is given up. Without an answer
        nobody knows what happened: `OutcomeUnknownError`. Raises where the session is for reading only.
        """
        self._require_writing(method, path)
        try:
            for _ in range(1 if self._basic else max(2, self.quirks.login_tries)):
                reply = self._library.send(method, path, deadline, body=body, if_match=if_match)
                if reply.status != 401:
                    break
        except NoAnswerError as error:
            raise OutcomeUnknownError(error.message, remedy="look at the machine before asking again") from error
        self._answered = self._answered or reply.status != 401
        return reply

    def upload(self, path: str, upload: Upload, deadline: Deadline) -> Reply:
        """A file, sent once, on the same terms as `write`; a 401 to it is for its sender to judge, after a look."""
        self._require_writing("POST", path)
        try:
            return self._library.upload(path, upload, deadline)
        except NoAnswerError as error:
            raise OutcomeUnknownError(error.message, remedy="look at the machine before asking again") from error

    def _require_writing(self, method: Method, path: str) -> None:
        if self._read_only:
            remedy = "run it without --read-only where the machine may be changed"
            raise EdgeError(f"this run only reads: {method} was not sent", where=path, remedy=remedy)

    def renew(self, deadline: Deadline) -> None:
        """Log in anew: the BMC has ended our session. A session that never answered anything is not renewed."""
        if not self._answered:
            raise AuthenticationError("the BMC opens a session and then rejects it", remedy="reset the BMC")
        log.info("%s: the BMC has ended our session, logging in anew", self._address.host)
        before = self._location
        closed = self._leave(deadline.within(self._patience))
        self._enter(self.root, deadline)
        if not closed:  # it ended for us, and may still count for the BMC: the new session may close the old one
            self._delete(before, deadline.within(self._patience))

    def _service(self, deadline: Deadline) -> Answer:
        """The service root as anybody sees it; `Unreadable` at BMCs that show it to users only."""
        reply = self._asker.ask("GET", f"{ROOT}/", deadline)
        if reply.status not in (200, 401):
            raise EdgeError(f"no Redfish service: HTTP {reply.status}", remedy="check that this is a BMC's address")
        return answer_of(reply)

    def _get(self, path: str, deadline: Deadline) -> Reply:
        """A read. Rejected, it is repeated before the session is given up: a token is no password."""
        keep = self.quirks.keep_alive
        target = f"{ROOT}/" if path == ROOT else path
        reply = self._asker.ask("GET", target, deadline, keep=keep)
        for _ in range(0 if self._basic else max(1, self.quirks.login_tries - 1)):
            if reply.status != 401:
                break
            deadline.sleep(self._timing.busy, "waiting to ask a BMC again that has rejected our session")
            reply = self._asker.ask("GET", target, deadline, keep=keep)
        return reply

    def _enter(self, service: Answer, deadline: Deadline) -> str:
        self._library.use_token(None)  # a log-in that carries the token of a session that ended is refused by some
        opened = self._login.open(service, self.quirks, deadline)
        self._basic = not opened.token
        if self._basic:
            self._library.use_basic(self._address)
        else:
            self._library.use_token(opened.token)
        self._location, self._answered = opened.location, False
        self.logins += 1
        self.redact.add([opened.token])
        return opened.token

    @property
    def _patience(self) -> float:
        """Seconds for a log-out, by how slow this BMC was seen to be."""
        return self._timing.leaving(self._library.stopwatch.slowest)

    def _leave(self, deadline: Deadline) -> bool:
        location, self._location = self._location, ""
        return self._delete(location, deadline)

    def _delete(self, location: str, deadline: Deadline) -> bool:
        """Whether the session is gone, by the BMC's word; a failure is logged."""
        try:
            status = self._asker.ask("DELETE", location, deadline).status if location else 404
        except ClusterctlError as error:
            log.warning("%s: the session could not be closed: %s", self._address.host, error.message)
            return False
        if status not in (*_CLOSED, 401):
            log.warning("%s: the BMC did not close our session: HTTP %s", self._address.host, status)
        return status in _CLOSED
