"""The transport to one BMC: sockets that observe a deadline, adapters for `requests`, translation of errors.

BMCs hang, and some answer a byte at a time. `requests` knows only a time-out per byte, and no cancellation. So the
socket itself waits in slices and checks the deadline and the cancel token between them.

The adapters decide which peer is trusted and what is sent to it. The library's own session would follow the
environment's proxies and netrc, redirect writes, and send the session's token to another host.
"""

from __future__ import annotations

import hashlib
import ssl
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http.client import IncompleteRead, RemoteDisconnected
from typing import Any, cast
from urllib.parse import urljoin

import requests
from requests import PreparedRequest, Response
from requests.adapters import HTTPAdapter
from urllib3.connectionpool import ConnectionPool
from urllib3.exceptions import LocationParseError, ProtocolError
from urllib3.util import parse_url

from clusterctl.edges.limited_sockets import limited_context, limited_pool
from clusterctl.edges.redfish.upload import Upload
from clusterctl.edges.tally import Asked, count
from clusterctl.edges.tls import Trust, TrustingAdapter, causes, distrust
from clusterctl.fleet.errors import ClusterctlError, EdgeError, UnreachableError
from clusterctl.fleet.peer_text import visible_line
from clusterctl.ports import BmcAddress, Deadline

REQUEST_SECONDS = 60.0
MAX_ANSWER_BYTES = 16 * 2**20
_PART_BYTES = 1 << 16


class NoAnswerError(UnreachableError):
    """The request was sent and no answer came: whether it took effect is unknown."""


class DroppedError(NoAnswerError):
    """The BMC closed the connection instead of answering."""


# --- sockets ----------------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class RequestLimit:
    """Limits of the request that a socket waits for: its end, and the size of its answer.

    grace  seconds for which a cancelled run still waits for the answer, from the first `check` that finds it cancelled
    """

    deadline: Deadline
    until: float = 0.0
    doing: str = ""
    received: int = 0
    grace: float = 0.0
    _given_up_at: float | None = None

    def begin(self, deadline: Deadline, doing: str, seconds: float = REQUEST_SECONDS) -> None:
        """Start the next request."""
        self.deadline, self.doing, self.received = deadline, doing, 0
        self.until, self._given_up_at = min(deadline.at, deadline.timer.now() + seconds), None

    def check(self) -> None:
        """Raise when the run was cancelled, the time is over, or the answer grows without end."""
        now = self.deadline.timer.now()
        if self.deadline.cancelled.is_set():
            self._given_up_at = now + self.grace if self._given_up_at is None else self._given_up_at
            if now >= self._given_up_at:
                self.deadline.check_cancelled(self.doing)
        if now >= self.until:
            remedy = "reset the BMC: it accepts connections and does not answer"
            raise NoAnswerError(f"no answer in time while {self.doing}", remedy=remedy)
        if self.received > MAX_ANSWER_BYTES:
            raise EdgeError(f"the answer is longer than {MAX_ANSWER_BYTES} bytes while {self.doing}")

    def receive(self, read: Callable[[], int]) -> int:
        """Call `read` until it returns a count of bytes, and check the limits between its time-outs."""
        while True:
            self.check()
            try:
                count = read()
            except TimeoutError:
                continue
            self.received += count
            return count


class Stopwatch:
    """Measures the slowest answer of a BMC, its connection included. `clock` returns monotonic seconds.

    A request that ends in an error does not count: it does not show the speed of answers.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self.slowest = 0.0

    @contextmanager
    def answer(self) -> Iterator[None]:
        """Measure one request and its answer."""
        began = self._clock()
        yield
        self.slowest = max(self.slowest, self._clock() - began)


# --- adapters ---------------------------------------------------------------------------------------------------------


class BmcAdapter(HTTPAdapter):
    """Sends to one BMC only.

    sent            number of requests, redirects included
    authorization   value of the `Authorization` header; empty: none, despite the environment's netrc
    upload          replaces the body of the next requests, so that a firmware image is not held in memory
    certificate     SHA-256 of the certificate behind the newest connection; empty without TLS

    Redirects of reads are followed within this BMC; an answer does not decide where a write goes.
    """

    sent = 0
    authorization = ""
    upload: Upload | None = None
    certificate = ""
    origin: str

    def send(
        self,
        request: PreparedRequest,
        stream: bool = False,
        timeout: Any = None,
        verify: bool | str = True,
        cert: Any = None,
        proxies: Any = None,
    ) -> Response:
        del proxies  # those of the environment
        self.sent += 1
        count(Asked.BMC)
        request.headers.pop("Authorization", None)
        if self.authorization:
            request.headers["Authorization"] = self.authorization
        if self.upload is not None:
            request.body = cast("Any", self.upload)
            request.headers.update({"Content-Type": self.upload.content_type, "Content-Length": str(len(self.upload))})
        response = super().send(request, stream, timeout, verify, cert, None)
        _bound_decoding(request, response)
        if response.is_redirect:
            location = response.headers.pop("location")
            if request.method == "GET":
                response.headers["location"] = self._within(request, location)
        return response

    def _within(self, request: PreparedRequest, location: str) -> str:
        """Return path and query of a redirect's target; `EdgeError` where it is another host, port or scheme."""
        try:
            target = parse_url(urljoin(f"{self.origin}{request.path_url}", location))
        except (LocationParseError, ValueError):
            target = parse_url("")
        if _origin(target) != _origin(parse_url(self.origin)):
            raise EdgeError("the BMC redirects to another host", remedy="check that this is a BMC's address")
        return target.request_uri


class _TlsAdapter(BmcAdapter, TrustingAdapter):
    def __init__(self, address: BmcAddress, limit: RequestLimit) -> None:
        self.origin = origin_of(address)
        trust = Trust(address.ca_file, address.fingerprint)
        context = limited_context(trust, limit, self._proven)
        TrustingAdapter.__init__(self, trust, context, max_retries=0, pool_maxsize=1)

    def _proven(self, certificate: bytes) -> None:
        self.certificate = hashlib.sha256(certificate).hexdigest()


class _PlainAdapter(BmcAdapter):
    """Sends without TLS, also for a URL of https: the library accepts an adapter for https only."""

    def __init__(self, address: BmcAddress, limit: RequestLimit) -> None:
        self.origin = origin_of(address)
        self._address = address
        self._limit = limit
        super().__init__(max_retries=0, pool_maxsize=1)

    def init_poolmanager(self, connections: int, maxsize: int, block: bool = False, **pool: Any) -> None:
        super().init_poolmanager(connections, maxsize, block, **pool)
        self.poolmanager.pool_classes_by_scheme = {"http": limited_pool(self._limit)}

    def get_connection_with_tls_context(
        self, request: PreparedRequest, verify: Any, proxies: Any = None, cert: Any = None
    ) -> ConnectionPool:
        del request, verify, proxies, cert
        return cast(
            "ConnectionPool", self.poolmanager.connection_from_host(self._address.host, self._address.port, "http")
        )

    def cert_verify(self, conn: Any, url: str, verify: bool | str, cert: Any) -> None:
        """Verify nothing: there is no certificate."""


def _bound_decoding(request: PreparedRequest, response: Response) -> None:
    """Raise `EdgeError` for an encoding that was not asked for, before the body is read: a megabyte of gzip may hold
    gigabytes. Where it was asked for (a BMC that refuses `identity`), read at most `MAX_ANSWER_BYTES` of it, decoded.
    """
    encoding = response.headers.get("content-encoding", "").strip().lower()
    if encoding in ("", "identity"):
        return
    if encoding not in (request.headers.get("Accept-Encoding") or "").lower():
        response.close()
        raise EdgeError(
            f"the answer is encoded ({visible_line(encoding, 40)}), which was not asked for",
            remedy="update the firmware of the BMC, or the proxy before it",
        )
    content = bytearray()
    for part in response.iter_content(_PART_BYTES):
        content += part
        if len(content) > MAX_ANSWER_BYTES:
            response.close()
            raise EdgeError(f"the decoded answer is longer than {MAX_ANSWER_BYTES} bytes")
    response._content = bytes(content)  # noqa: SLF001 — what `Response.content` returns once the body is read


def adapter_for(address: BmcAddress, limit: RequestLimit) -> BmcAdapter:
    """Return the adapter for this BMC; its sockets check `limit` while they wait."""
    return _PlainAdapter(address, limit) if address.plain_http else _TlsAdapter(address, limit)


def origin_of(address: BmcAddress) -> str:
    """Return scheme, host and port of a BMC as a URL without a path."""
    host = f"[{address.host}]" if ":" in address.host else address.host
    return f"{'http' if address.plain_http else 'https'}://{host}:{address.port}"


def _origin(url: Any) -> tuple[str | None, str | None, int | None]:
    return url.scheme, url.host, url.port or {"http": 80, "https": 443}.get(url.scheme or "")


# --- errors -----------------------------------------------------------------------------------------------------------

_DROPPED = (
    ConnectionResetError,
    BrokenPipeError,
    RemoteDisconnected,
    IncompleteRead,
    ProtocolError,
    ssl.SSLEOFError,
    ssl.SSLZeroReturnError,
)


def translated(error: BaseException, doing: str) -> ClusterctlError:
    """Return a library's error as one of ours, without the library's text: it may contain requests and URLs."""
    chain = causes(error)
    ours = next((cause for cause in chain if isinstance(cause, ClusterctlError)), None)
    if ours is not None:
        return ours
    untrusted = distrust(chain, "the BMC", "the BMCs' ca_file", "tls_fingerprint in the sheet")
    if untrusted is not None:
        return untrusted
    if any(isinstance(cause, _DROPPED) for cause in chain):
        return DroppedError(f"the BMC closed the connection while {doing}")
    return _no_connection(error, chain, doing)


def _no_connection(error: BaseException, chain: list[BaseException], doing: str) -> EdgeError:
    reason = _reason(chain)
    if isinstance(error, TimeoutError) or any(isinstance(cause, requests.exceptions.Timeout) for cause in chain):
        return UnreachableError("the BMC does not answer", remedy="check its power, its cable and its address")
    if isinstance(error, requests.exceptions.SSLError | ssl.SSLError):
        return EdgeError(f"no TLS with the BMC: {reason}", remedy="check that its HTTPS service supports TLS 1.2")
    foreign = isinstance(error, requests.exceptions.RequestException)
    if isinstance(error, requests.exceptions.ConnectionError) or (isinstance(error, OSError) and not foreign):
        return UnreachableError(f"the BMC cannot be reached: {reason}", remedy="check its power, cable and address")
    return EdgeError(f"{type(error).__name__} while {doing}")


def _reason(chain: Iterable[BaseException]) -> str:
    """Return the operating system's reason for the first error that has one."""
    return next((cause.strerror for cause in chain if isinstance(cause, OSError) and cause.strerror), "no connection")
