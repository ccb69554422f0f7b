"""One Redfish session: logged in once, always closed, its reads retried while the BMC is busy."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar
from urllib.parse import urlsplit

from tenacity import RetryCallState, Retrying, retry_if_exception_type, retry_if_result, stop_after_attempt
from tenacity.wait import wait_random_exponential

from clusterctl.edges.redfish.failures import DroppedError
from clusterctl.edges.redfish.library import Library, Reply
from clusterctl.edges.redfish.patience import NoAnswerError
from clusterctl.fleet.errors import AuthenticationError, ClusterctlError, EdgeError, OutcomeUnknownError, ParseError
from clusterctl.formats.redfish.tree import ROOT, Answer, Answers, Unreadable, Wanted, normal
from clusterctl.ports import BmcAddress, Deadline

log = logging.getLogger(__name__)
T = TypeVar("T")

_BUSY = frozenset({429, 502, 503, 504})
_FULL = ("RAC0218", "SessionLimitExceeded", "maximum number of sessions", "maximum number of user sessions")
_MAX_RESOURCES = 5000
_DEFAULT_SESSIONS = f"{ROOT}/SessionService/Sessions"


@dataclass(frozen=True, slots=True)
class Pace:
    """Seconds between tries. `busy` grows from try to try; `poll` between looks at the power state; `refused` before a
    reset is asked for again that the BMC could not do yet; `grace` for an OS to shut down before power is cut.
    """

    attempts: int = 4
    busy: float = 0.5
    busy_max: float = 10.0
    poll: float = 1.0
    refused: float = 10.0
    refusals: int = 6
    grace: float = 60.0
    logout: float = 5.0


class Session:
    """`open` logs in, `close` logs out; in between `read`, `walk` and `write`."""

    def __init__(self, address: BmcAddress, deadline: Deadline, pace: Pace) -> None:
        self._address = address
        self._pace = pace
        self._library = Library(address, deadline)
        self._location = ""
        self._keep = False
        self.root: Answer = Unreadable("not read yet")

    def open(self, deadline: Deadline) -> None:
        """Log in; `close` is due also when this fails. A rejected password is never tried again (lock-out)."""
        reply = self._patiently("GET", f"{ROOT}/", deadline)
        if reply.status not in (200, 401):
            raise EdgeError(f"no Redfish service: HTTP {reply.status}", remedy="check that this is a BMC's address")
        service = _answer(reply)
        body = {"UserName": self._address.user, "Password": self._address.password}
        login = self._patiently("POST", _sessions_path(service), deadline, body=body)
        token = login.headers.get("x-auth-token", "")
        if login.status not in (200, 201) or not token:
            raise _login_error(login)
        self._library.use_token(token)
        self._location = _location(login)
        self.root = self.read(ROOT, deadline) if isinstance(service, Unreadable) else service
        # HPE resets connections that are used again.
        self._keep = not (isinstance(self.root, Mapping) and self.root.get("Vendor") == "HPE")

    def close(self) -> None:
        """Give the session back: BMCs hold few. A failure is logged, for there is nothing else left to do."""
        try:
            if self._location:
                reply = self._library.send("DELETE", self._location, Deadline.after(self._pace.logout))
                if reply.status not in (200, 202, 204, 404):
                    log.warning("%s: the BMC did not close our session: HTTP %s", self._address.host, reply.status)
        except ClusterctlError as error:
            log.warning("%s: the session could not be closed: %s", self._address.host, error.message)
        finally:
            self._location = ""
            self._library.use_token(None)
            self._library.close()

    def read(self, path: str, deadline: Deadline) -> Answer:
        """One resource. What this BMC refuses or garbles is `Unreadable`; a BMC that is gone is an error."""
        reply = self._patiently("GET", f"{ROOT}/" if path == ROOT else path, deadline)
        if reply.status == 401:
            raise AuthenticationError("the BMC ended our session", remedy="run the step again")
        return _answer(reply)

    def walk(self, ask: Callable[[Answers], T | Wanted], deadline: Deadline) -> tuple[T, Answers]:
        """Read what `ask` wants until it has its answer; that, and all that was read for it."""
        answers: dict[str, Answer] = {ROOT: self.root}
        while isinstance(found := ask(answers), Wanted):
            if len(answers) + len(found.paths) > _MAX_RESOURCES:
                raise ParseError(f"the BMC lists more than {_MAX_RESOURCES} resources")
            for path in found.paths:
                answers[path] = self.read(path, deadline)
        return found, answers

    def write(self, path: str, body: Mapping[str, str], deadline: Deadline) -> Reply:
        """POST, once. Without an answer nobody knows what happened: `OutcomeUnknownError`."""
        try:
            return self._library.send("POST", path, deadline, body=body)
        except NoAnswerError as error:
            raise OutcomeUnknownError(error.message, remedy="look at the machine before asking again") from error

    def _patiently(self, method: Any, path: str, deadline: Deadline, *, body: Mapping[str, str] | None = None) -> Reply:
        """Tried again while the BMC says that it is busy; a read also where it dropped the connection."""
        again = retry_if_result(lambda reply: reply.status in _BUSY)
        dropped = retry_if_exception_type(DroppedError)
        retrying = Retrying(
            stop=stop_after_attempt(self._pace.attempts),
            wait=self._pause,
            sleep=lambda seconds: deadline.sleep(seconds, f"waiting for a busy BMC to answer {method} {path}"),
            retry=again | dropped if method == "GET" else again,
            retry_error_callback=_last,
        )
        return retrying(self._library.send, method, path, deadline, body=body, keep=self._keep and method == "GET")

    def _pause(self, state: RetryCallState) -> float:
        """What the BMC asks for in `Retry-After`, else longer from try to try."""
        reply = None if state.outcome is None or state.outcome.failed else state.outcome.result()
        told = reply.headers.get("retry-after", "") if reply else ""
        if told.isdigit():
            return min(float(told), self._pace.busy_max)
        return wait_random_exponential(multiplier=self._pace.busy, max=self._pace.busy_max)(state)


def _last(state: RetryCallState) -> Any:
    """After the last try: its answer, or its error."""
    return state.outcome.result() if state.outcome else None


def _answer(reply: Reply) -> Answer:
    if reply.status != 200:
        return Unreadable(f"HTTP {reply.status} {explanation(reply)}".strip())
    try:
        told = json.loads(reply.content)
    except (ValueError, RecursionError):
        return Unreadable("the answer is no JSON")
    return told if isinstance(told, dict) else Unreadable("the answer is no JSON object")


def explanation(reply: Reply) -> str:
    """What a Redfish error says in its own words (`@Message.ExtendedInfo`), at most 300 characters."""
    try:
        told = json.loads(reply.content)["error"]
        infos = told.get("@Message.ExtendedInfo") or [{}]
        words = [f"{info.get('MessageId', '')} {info.get('Message', '')}".strip() for info in infos]
        return "; ".join(word for word in words if word)[:300] or str(told.get("message", ""))[:300]
    except (ValueError, RecursionError, KeyError, TypeError, AttributeError):
        return ""  # not every error has a body; the status stands


def _sessions_path(service: Answer) -> str:
    told: Any = service
    for key in ("Links", "Sessions", "@odata.id"):
        told = told.get(key) if isinstance(told, Mapping) else None
    return normal(told, f"{ROOT} Links.Sessions") if isinstance(told, str) else _DEFAULT_SESSIONS


def _location(login: Reply) -> str:
    """Where the session is to be deleted: HPE writes a whole URL, some write it in the body only."""
    told: Any = login.headers.get("location") or _body(login).get("@odata.id")
    if not isinstance(told, str) or not told:
        log.warning("the BMC does not tell where its session is: it stays open until it times out")
        return ""
    return normal(urlsplit(told).path, "Location")


def _body(reply: Reply) -> Mapping[str, Any]:
    answer = _answer(Reply(200, reply.content, {}))
    return {} if isinstance(answer, Unreadable) else answer


def _login_error(login: Reply) -> ClusterctlError:
    words = explanation(login)
    if login.status in (401, 403):
        return AuthenticationError(
            f"the BMC rejects user name or password (HTTP {login.status} {words}".strip() + ")",
            remedy="check the credentials that the site file refers to; nothing was tried again",
        )
    if any(sign.lower() in words.lower() for sign in _FULL):
        return EdgeError(
            "the BMC has no free session", remedy="close old sessions on the BMC, or wait until they time out"
        )
    return EdgeError(f"the BMC opens no session: HTTP {login.status} {words}".strip())
