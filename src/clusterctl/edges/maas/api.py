"""One signed request to MAAS and its answer. Reads are tried again, writes never; each try is signed afresh.

A write ends when MAAS has answered it, however long that takes: up to MAAS 3.7 a request may wait for a BMC for
minutes.
"""

from __future__ import annotations

import ssl
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from functools import cached_property
from typing import Any, TypeVar

import requests
import stamina
from requests_oauthlib import OAuth1
from urllib3.exceptions import ConnectTimeoutError, MaxRetryError, NewConnectionError

from clusterctl.edges.answers import answer_context, answer_session, read_body, send
from clusterctl.edges.maas.settings import MaasSettings
from clusterctl.edges.redaction import Redaction
from clusterctl.edges.tally import Asked, count
from clusterctl.edges.tls import causes, distrust
from clusterctl.fleet.errors import (
    AuthenticationError,
    CancelledError,
    ClusterctlError,
    EdgeError,
    InstallerBusyError,
    InstallerUnavailableError,
    OutcomeUnknownError,
    ParseError,
    UnreachableError,
)
from clusterctl.fleet.finding import SIMULATED_HTTP, Evidence
from clusterctl.formats.maas import machines as formats
from clusterctl.formats.peer_json import JsonLimits, read_json
from clusterctl.ports import Clock, Deadline


class MaasRefusedError(EdgeError):
    """MAAS refused. `status` is the HTTP one; `fields` are those that a 400 names as wrong."""

    def __init__(
        self, message: str, *, where: str, remedy: str, status: int, fields: Mapping[str, tuple[str, ...]]
    ) -> None:
        super().__init__(message, where=where, remedy=remedy)
        self.status = status
        self.fields = fields


class MaasBusyError(InstallerBusyError):
    """MAAS itself answers 503 or 504: it has not done it. Ask again, after `retry_after` seconds where MAAS named a
    time.
    """

    def __init__(self, message: str, *, where: str, remedy: str, retry_after: float | None) -> None:
        super().__init__(message, where=where, remedy=remedy)
        self.retry_after = retry_after


_REMEDIES = {
    400: "correct what MAAS names; for a series or kernel, import its image into MAAS",
    403: (
        "use an administrator's API key, with rights on the machine's pool where MAAS takes rights from RBAC; check in "
        "MAAS whether the machine is locked or another user's"
    ),
    404: "check the url, and whether the machine was deleted from MAAS",
    409: "check the machine's state in MAAS, then run the step again",
    410: "set the url to MAAS's API 2.0",
}
_BAD_KEYS = {  # what MAAS's 401 bodies begin with, after `Authorization Error:`
    "Invalid signature": ("the secret of the API key is wrong", "copy the whole key again from MAAS"),
    "Invalid access token": ("the API key was deleted in MAAS or belongs to another MAAS", "make a new key in MAAS"),
    "Invalid API key": ("the API key was deleted in MAAS or belongs to another MAAS", "make a new key in MAAS"),
    "Expired timestamp": ("the clocks of MAAS and of this controller differ by more than 5 minutes", "set the clocks"),
    "Nonce already used": ("the request reached MAAS twice", "remove the proxy that repeats requests"),
}

FORBIDDEN = 403
_REASONS = {FORBIDDEN: "not permitted"}
_UNAVAILABLE = (503, 504)


def refusal(status: int, headers: Mapping[str, str], text: str, *, where: str, writes: bool) -> ClusterctlError:
    """Return the error for an answer of 300 or more; `text` holds no secret any more.

    `writes`: the request would have changed something, so that a proxy's error leaves open whether it did.
    """
    content_type = headers.get("content-type", "")
    if status == 401:
        return _unauthorised(text, where)
    if status in (502, 504) and writes:
        return OutcomeUnknownError(
            f"MAAS's proxy gave no answer of MAAS (HTTP {status})", where=where, remedy="look at the machine in MAAS"
        )
    is_page = formats.is_page(content_type, text)
    if status == 502 or (status in _UNAVAILABLE and is_page):
        return InstallerUnavailableError(
            f"the MAAS region does not run: its proxy answers HTTP {status}",
            where=where,
            remedy="start MAAS's region controller; see its regiond log",
        )
    reason = formats.error_text(content_type, text) or _REASONS.get(status, "no reason given")
    if status in _UNAVAILABLE:
        return MaasBusyError(
            f"MAAS cannot do it now (HTTP {status}): {reason}",
            where=where,
            remedy="check that MAAS's rack controllers run and reach the BMC, then run the step again",
            retry_after=_seconds(headers.get("retry-after", "")),
        )
    return MaasRefusedError(
        f"MAAS refuses (HTTP {status}): {reason}",
        where=where,
        remedy=_REMEDIES.get(status, "see MAAS's regiond log"),
        status=status,
        fields={} if is_page else formats.error_fields(content_type, text),
    )


def _unauthorised(text: str, where: str) -> AuthenticationError:
    for sign, (cause, remedy) in _BAD_KEYS.items():
        if sign in text:
            return AuthenticationError(f"MAAS rejects the API key: {cause}", where=where, remedy=remedy)
    return AuthenticationError("MAAS rejects the API key", where=where, remedy="make a new key in MAAS")


def _seconds(retry_after: str) -> float | None:
    """Return the seconds of a Retry-After header; None where it names a time, or what is no number of seconds."""
    usable = retry_after.isascii() and retry_after.isdecimal() and len(retry_after) < 10
    return float(retry_after) if usable else None


READ_SECONDS = 60.0
MAX_BODY = 256 * 1024 * 1024
"""Bytes of one answer. A list of 511 machines has 9 MB."""
LIMITS = JsonLimits(size=MAX_BODY, values=5_000_000)
READ_ATTEMPTS = 4
RETRY_WAIT_MAX = 5.0
RETRY_AFTER_MAX = 10.0

CANCEL_SECONDS = 0.2

MaasTurn = Callable[[Deadline], AbstractContextManager[object]]
"""Waits until one more request may be sent, and counts it until it is answered."""


def at_once(_deadline: Deadline) -> AbstractContextManager[object]:
    """Permit every request at once."""
    return nullcontext()


Form = Sequence[tuple[str, str]]
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class MaasAnswer:
    """MAAS's answer: the JSON value (None where the body is empty or plain text), its evidence, and MAAS's clock (None
    where MAAS sends no time).
    """

    body: Any
    evidence: Evidence
    date: datetime | None = None


class MaasApi:
    """Signed requests. Safe to use from many threads: each request has its own connection, so that no write is ever
    sent on a connection that the other side is just closing.
    """

    def __init__(self, settings: MaasSettings, clock: Clock, turn: MaasTurn = at_once) -> None:
        """`turn` is taken for each request that changes something."""
        self._settings = settings
        self._clock = clock
        self._turn = turn

    @cached_property
    def _tls(self) -> ssl.SSLContext:
        return answer_context(self._settings.trust)

    @property
    def where(self) -> str:
        return self._settings.base

    def get(self, path: str, query: Form, deadline: Deadline, *, seconds: float = READ_SECONDS) -> MaasAnswer:
        """Read; again while MAAS does not answer within `seconds` or is busy, at most four times within the deadline.

        Raises `InstallerUnavailableError` where MAAS does not run or cannot be reached.
        """

        def worth_another_try(error: Exception) -> bool | float:
            if deadline.remaining <= 0 or deadline.cancelled.is_set():
                return False
            if isinstance(error, MaasBusyError) and error.retry_after is not None:
                return min(error.retry_after, RETRY_AFTER_MAX, deadline.remaining)
            return isinstance(error, (UnreachableError, MaasBusyError))

        deadline.check(f"asking MAAS: GET {path}")
        request = requests.Request("GET", f"{self.where}/{path}", params=list(query))
        caller = stamina.RetryingCaller(READ_ATTEMPTS, deadline.remaining, wait_max=RETRY_WAIT_MAX)
        return caller.on(worth_another_try)(self._request, request, deadline, seconds)

    def post(self, path: str, op: str, form: Form, deadline: Deadline, secrets: Iterable[str] = ()) -> MaasAnswer:
        """Write once, and wait for the answer. `op` empty: create.

        Raises `OutcomeUnknownError` where the answer was lost, `CancelledError` where the run was stopped meanwhile:
        MAAS may go on with it then.
        """
        query = [("op", op)] if op else []
        request = requests.Request("POST", f"{self.where}/{path}", params=query, data=list(form) or None)
        return self._write(request, deadline, tuple(secrets))

    def put(self, path: str, form: Form, deadline: Deadline, secrets: Iterable[str] = ()) -> MaasAnswer:
        """Change fields once, as `post`."""
        request = requests.Request("PUT", f"{self.where}/{path}", data=list(form) or None)
        return self._write(request, deadline, tuple(secrets))

    def _write(self, request: requests.Request, deadline: Deadline, secrets: tuple[str, ...]) -> MaasAnswer:
        seconds = self._settings.write_seconds
        deadline.check(f"asking MAAS: {request.method} {request.url}")
        unstopped = replace(deadline, cancelled=threading.Event())  # the call ends unheard, with MAAS's whole answer

        def ask() -> MaasAnswer:
            with self._turn(deadline):
                return self._request(request, unstopped, seconds, secrets)

        return interruptible(ask, deadline, "asking MAAS")

    def _request(
        self, request: requests.Request, deadline: Deadline, seconds: float, secrets: tuple[str, ...] = ()
    ) -> MaasAnswer:
        request.auth = self._signature()  # each attempt has a timestamp and nonce of its own
        with answer_session(self._settings.trust, self._tls) as session:
            prepared = session.prepare_request(request)
            source = f"{prepared.method} {prepared.path_url}"
            deadline.check(f"asking MAAS: {source}")
            response, content = self._send(session, prepared, deadline.within(seconds), source)
        return self._read(response, content, source, secrets)

    def _send(
        self, session: requests.Session, prepared: requests.PreparedRequest, deadline: Deadline, source: str
    ) -> tuple[requests.Response, bytes]:
        count(Asked.MAAS)
        try:
            response = send(session, prepared, deadline)
            return response, read_body(response, MAX_BODY, deadline, "MAAS", f"{self.where} {source}")
        except requests.exceptions.SSLError as error:
            raise self._no_tls(error, writes=prepared.method != "GET", source=source) from error
        except requests.exceptions.RequestException as error:
            raise self._lost(error, writes=prepared.method != "GET", source=source) from error

    def _no_tls(self, error: requests.exceptions.SSLError, *, writes: bool, source: str) -> ClusterctlError:
        """Return the error of a failed TLS: a wrong certificate stays wrong; else MAAS, or what stands before it, is
        away. The record layer may also fail after a write was sent.
        """
        untrusted = distrust(causes(error), "MAAS", "provisioning.ca_file", "provisioning.tls_fingerprint")
        if untrusted is not None:
            untrusted.where = self.where
            return untrusted
        if writes:
            return self._lost(error, writes=True, source=source)
        return InstallerUnavailableError(
            "no TLS with MAAS",
            where=self.where,
            remedy="check that MAAS runs behind its balancer, and that the url names its HTTPS port",
        )

    def _lost(self, error: requests.exceptions.RequestException, *, writes: bool, source: str) -> ClusterctlError:
        if writes and not _never_sent(error):
            return OutcomeUnknownError(
                f"MAAS's answer to {source} was lost", where=self.where, remedy="look at the machine in MAAS"
            )
        if _refused(error):
            return InstallerUnavailableError(
                "the MAAS region does not run: its address refuses connections",
                where=self.where,
                remedy="start MAAS's region controller, or correct the port in the url",
            )
        return InstallerUnavailableError(
            f"MAAS does not answer ({type(error).__name__})",
            where=self.where,
            remedy="check the url, the network, and that MAAS runs",
        )

    def _read(self, response: requests.Response, body: bytes, source: str, secrets: tuple[str, ...]) -> MaasAnswer:
        redact = Redaction((*secrets, *self._settings.api_key.split(":")))
        if response.status_code >= 300:
            raise refusal(
                response.status_code,
                {name.lower(): value for name, value in response.headers.items()},
                redact(body.decode(errors="replace")),
                where=f"{self.where} {source}",
                writes=not source.startswith("GET "),
            )
        content = redact.bytes(body)
        origin = self._settings.origin.of_peer(simulated=response.headers.get(SIMULATED_HTTP, "").lower() == "true")
        evidence = Evidence(source, self.where, self._clock.now(), origin, content)
        date = date_of(response.headers.get("date", ""))
        if not response.headers.get("content-type", "").startswith("application/json"):
            return MaasAnswer(None, evidence, date)
        try:
            return MaasAnswer(read_json(body, LIMITS), evidence, date)
        except ParseError as error:
            raise ParseError(f"MAAS's answer to {source} {error.message}", where=self.where) from error

    def _signature(self) -> OAuth1:
        consumer, token, secret = self._settings.api_key.split(":")
        return OAuth1(
            consumer,
            client_secret="",
            resource_owner_key=token,
            resource_owner_secret=secret,
            signature_method="PLAINTEXT",
            signature_type="auth_header",
        )


def interruptible(call: Callable[[], T], deadline: Deadline, doing: str) -> T:
    """Return the call's result. Raise `CancelledError` as soon as the run is stopped: the call ends unheard then, in a
    thread that does not keep the process.
    """
    results: list[T] = []
    errors: list[BaseException] = []
    ended = threading.Event()

    def work() -> None:
        try:
            results.append(call())
        except BaseException as error:  # noqa: BLE001 — raised again by the waiting thread
            errors.append(error)
        finally:
            ended.set()

    threading.Thread(target=work, name="maas write", daemon=True).start()
    while not ended.wait(CANCEL_SECONDS):
        if deadline.cancelled.is_set():
            raise CancelledError(f"stopped while {doing}")
    if errors:
        raise errors[0]
    return results[0]


def date_of(header: str) -> datetime | None:
    """Return the time of a Date header. RFC 9110, 6.6.1: always UTC, also where a proxy leaves the zone out."""
    try:
        date = parsedate_to_datetime(header)
    except (ValueError, OverflowError):
        return None
    return date if date.tzinfo is not None else date.replace(tzinfo=UTC)


def _refused(error: requests.exceptions.RequestException) -> bool:
    """Return whether nothing listens at the address."""
    return any(isinstance(cause, ConnectionRefusedError) for cause in _chain(error))


def _chain(error: BaseException) -> Iterable[BaseException]:
    """Yield the error and what it was raised from, whichever way urllib3 keeps it."""
    current: BaseException | None = error
    for _ in range(8):
        if current is None:
            return
        yield current
        reason = getattr(current, "reason", None)
        first = current.args[0] if current.args else None
        links = (reason, first, current.__cause__, current.__context__)
        current = next((link for link in links if isinstance(link, BaseException)), None)


def _never_sent(error: requests.exceptions.RequestException) -> bool:
    """Return whether no connection came about."""
    if isinstance(error, requests.exceptions.ConnectTimeout):
        return True
    cause = error.args[0] if error.args else None
    return isinstance(cause, MaxRetryError) and isinstance(cause.reason, (NewConnectionError, ConnectTimeoutError))
