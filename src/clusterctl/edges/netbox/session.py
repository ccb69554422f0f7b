"""The HTTP session that pynetbox sends its requests with.

pynetbox sets no timeout, reads bodies of any size, follows redirects and believes the environment's proxies; this
session does none of that. It raises our errors itself, so that pynetbox never sees a refusal.
"""

from __future__ import annotations

import ssl
import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any
from urllib.parse import urlsplit

import requests
import stamina

from clusterctl.edges.answers import answer_context, answer_session, answered_by, body_parts
from clusterctl.edges.redaction import Redaction
from clusterctl.edges.tally import Asked, count
from clusterctl.edges.tls import Trust, causes, distrust
from clusterctl.fleet.errors import (
    AuthenticationError,
    BusyError,
    ClusterctlError,
    EdgeError,
    OutcomeUnknownError,
    ParseError,
    UnreachableError,
)
from clusterctl.fleet.peer_text import visible_line
from clusterctl.fleet.secret import NeverPickled
from clusterctl.formats.peer_json import JsonLimits, read_json
from clusterctl.ports import Deadline

ANSWER_SECONDS = 120.0
"""A page of 1,000 cabled interfaces took 10 s on a NetBox with two workers."""
MAX_ANSWER = 64 << 20
"""Bytes of one answer: a page of 1,000 full devices has 2 MB."""
MAX_TOTAL = 1 << 30
"""Bytes of all answers of one session."""
LIMITS = JsonLimits(size=MAX_ANSWER, values=5_000_000)
READ_ATTEMPTS = 4
RETRY_WAIT_MAX = 5.0
_BUSY = frozenset({429, 502, 503, 504})
_REMEDIES = {
    400: "correct in site.yml what NetBox names",
    404: "check netbox.url: the address of NetBox's first page, without /api",
    409: "look at the object in NetBox",
}


class NetboxRefusedError(EdgeError):
    """NetBox answered and refused. `status` is the HTTP one; `answer` the bounded JSON of its answer, None for none."""

    def __init__(self, message: str, *, where: str, remedy: str, status: int, answer: Any) -> None:
        super().__init__(message, where=where, remedy=remedy)
        self.status = status
        self.answer = answer


@dataclass(frozen=True, slots=True)
class NetboxConnection(NeverPickled):
    """Where NetBox is, and with which token. `url` has no `/api` and no slash at its end."""

    url: str
    token: str = field(repr=False)
    trust: Trust = field(default_factory=Trust)


@dataclass(frozen=True, slots=True)
class NetboxAnswer:
    """One answer, with the attributes that pynetbox reads of it."""

    status_code: int
    content: bytes
    headers: Mapping[str, str]
    where: str
    ok: bool = True

    def json(self) -> Any:
        """Return the JSON value. Raise `ParseError`."""
        return read_json(self.content, LIMITS, where=self.where)


class BoundedSession:
    """Sends requests for pynetbox. Thread-safe: each thread has connections of its own."""

    def __init__(self, connection: NetboxConnection, deadline: Deadline) -> None:
        self._connection = connection
        self._deadline = deadline
        self._own = threading.local()
        self._lock = threading.Lock()
        self._opened: list[requests.Session] = []
        self._left = MAX_TOTAL
        self._redact = Redaction([connection.token])

    def close(self) -> None:
        """Close the connections of all threads."""
        with self._lock:
            opened, self._opened = self._opened, []
        for session in opened:
            session.close()

    def get(self, url: str, **options: Any) -> NetboxAnswer:
        """Read; again while NetBox does not answer or is busy, at most four times within the deadline."""

        def worth_another_try(error: Exception) -> bool:
            stopped = self._deadline.remaining <= 0 or self._deadline.cancelled.is_set()
            return isinstance(error, UnreachableError | BusyError) and not stopped

        caller = stamina.RetryingCaller(READ_ATTEMPTS, max(self._deadline.remaining, 0.001), wait_max=RETRY_WAIT_MAX)
        return caller.on(worth_another_try)(self._request, "GET", url, options)

    def post(self, url: str, **options: Any) -> NetboxAnswer:
        """Create once. Raise `OutcomeUnknownError` where the answer was lost."""
        return self._request("POST", url, options)

    def patch(self, url: str, **options: Any) -> NetboxAnswer:
        """Change once, as `post`."""
        return self._request("PATCH", url, options)

    @cached_property
    def _tls(self) -> ssl.SSLContext:
        return answer_context(self._connection.trust)

    def _session(self) -> requests.Session:
        found = getattr(self._own, "session", None)
        if isinstance(found, requests.Session):
            return found
        with self._lock:
            session = answer_session(self._connection.trust, self._tls)
            self._opened.append(session)
        self._own.session = session
        return session

    def _request(self, method: str, url: str, options: Mapping[str, Any]) -> NetboxAnswer:
        source = f"{method} {urlsplit(url).path}"
        where = self._connection.url
        if not url.startswith(f"{where}/api/"):
            raise EdgeError(f"the request {source} is for another server: nothing was sent", where=where)
        self._deadline.check(f"asking NetBox: {source}")
        count(Asked.NETBOX)
        deadline = self._deadline.within(ANSWER_SECONDS)
        try:
            with (
                answered_by(deadline),
                self._session().request(method, url, allow_redirects=False, stream=True, **options) as response,
            ):
                content = self._body(response, source, deadline)
        except requests.exceptions.SSLError as error:
            raise self._no_tls(error) from error
        except requests.exceptions.RequestException as error:
            raise _lost(error, source, where) from error
        if response.status_code >= 300:
            text = self._redact(content.decode(errors="replace"))
            raise refusal(response.status_code, response.headers, text, source=source, where=where)
        return NetboxAnswer(response.status_code, content, response.headers, f"{where} {source}")

    def _body(self, response: requests.Response, source: str, deadline: Deadline) -> bytes:
        content = bytearray()
        for part in body_parts(response, deadline, "NetBox", f"{self._connection.url} {source}"):
            content += part
            with self._lock:
                self._left -= len(part)
            if len(content) > MAX_ANSWER or self._left < 0:
                limit = MAX_ANSWER >> 20 if len(content) > MAX_ANSWER else MAX_TOTAL >> 20
                raise ParseError(f"NetBox's answer to {source} is larger than {limit} MiB", where=self._connection.url)
        return bytes(content)

    def _no_tls(self, error: requests.exceptions.SSLError) -> ClusterctlError:
        untrusted = distrust(causes(error), "NetBox", "netbox.ca_file", "netbox.tls_fingerprint")
        if untrusted is None:
            remedy = "check that netbox.url names its HTTPS port"
            return EdgeError("no TLS with NetBox", where=self._connection.url, remedy=remedy)
        untrusted.where = self._connection.url
        return untrusted


def _lost(error: requests.exceptions.RequestException, source: str, where: str) -> ClusterctlError:
    reads = source.startswith("GET ")
    if not reads and not isinstance(error, requests.exceptions.ConnectTimeout):
        remedy = "run the same command again: it looks at NetBox before it writes"
        return OutcomeUnknownError(f"NetBox's answer to {source} was lost", where=where, remedy=remedy)
    remedy = "check netbox.url, the network, and that NetBox runs"
    return UnreachableError(f"NetBox does not answer ({type(error).__name__})", where=where, remedy=remedy)


def refusal(status: int, headers: Mapping[str, str], text: str, *, source: str, where: str) -> ClusterctlError:
    """Return the error for an answer of 300 or more; `text` holds no secret any more."""
    if status < 400:
        target = visible_line(headers.get("location", "nowhere"), 200)
        remedy = "write the address that NetBox itself uses as netbox.url"
        return EdgeError(f"NetBox sends {source} to {target} (HTTP {status})", where=where, remedy=remedy)
    answer = _answer(text, headers)
    reason = _reason(answer)
    if status in (401, 403):
        return _forbidden(reason, source, where)
    if status in _BUSY:
        if source.startswith("GET ") or status == 429:
            return BusyError(f"NetBox cannot answer now (HTTP {status})", where=where, remedy="try again later")
        remedy = "run the same command again: it looks at NetBox before it writes"
        return OutcomeUnknownError(
            f"NetBox's proxy gave no answer of NetBox (HTTP {status})", where=where, remedy=remedy
        )
    return NetboxRefusedError(
        f"NetBox refuses {source} (HTTP {status}): {reason or 'no reason given'}",
        where=where,
        remedy=_REMEDIES.get(status, "see NetBox's log"),
        status=status,
        answer=answer,
    )


def _forbidden(reason: str, source: str, where: str) -> AuthenticationError:
    """Return the error for 403, which NetBox answers to a wrong token and to a missing permission alike."""
    remedy = (
        "check in NetBox (Admin, API Tokens) that the token is enabled, valid, and allowed from this address; "
        "its user must be permitted to view sites, devices, interfaces, addresses and cables, for export to change them"
    )
    detail = f": {reason}" if reason else ""
    return AuthenticationError(f"NetBox does not permit {source} with this token{detail}", where=where, remedy=remedy)


def _answer(text: str, headers: Mapping[str, str]) -> Any:
    if "json" not in headers.get("content-type", ""):
        return None
    try:
        return read_json(text, JsonLimits(size=1 << 20))
    except ParseError:
        return None


def _reason(answer: Any) -> str:
    """Return NetBox's own reason as one bounded line: `detail`, else the fields with what is wrong with each."""
    if not isinstance(answer, dict):
        return ""
    detail = answer.get("detail")
    return visible_line(detail if isinstance(detail, str) else "; ".join(_reasons(answer)), 300)


def _reasons(answer: Mapping[str, Any]) -> Iterator[str]:
    for name, why in answer.items():
        parts = why.values() if isinstance(why, dict) else why if isinstance(why, list) else [why]
        yield f"{name}: {' '.join(str(part) for part in parts if isinstance(part, str))}"
