"""How requests reach one BMC: over TLS to whom the site trusts, or over plain HTTP where the site says so; never
elsewhere.
"""

from __future__ import annotations

import socket
import ssl
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http.client import IncompleteRead, RemoteDisconnected
from typing import Any, cast

import requests
from requests import PreparedRequest
from requests.adapters import HTTPAdapter
from urllib3.connection import HTTPConnection
from urllib3.connectionpool import ConnectionPool, HTTPConnectionPool
from urllib3.exceptions import ProtocolError
from urllib3.util import parse_url

from clusterctl.edges.tls import Trust, TrustingAdapter, causes, distrust
from clusterctl.fleet.errors import ClusterctlError, EdgeError, UnreachableError
from clusterctl.ports import BmcAddress, Deadline

SLICE_SECONDS = 0.25
REQUEST_SECONDS = 60.0
MAX_ANSWER_BYTES = 64 * 2**20


class NoAnswerError(UnreachableError):
    """The request went out and no answer came: whether it took effect is not known."""


@dataclass(slots=True)
class Watch:
    """The request that a socket waits for: until when, and how much it may send."""

    deadline: Deadline
    until: float = 0.0
    doing: str = ""
    received: int = 0

    def begin(self, deadline: Deadline, doing: str, seconds: float = REQUEST_SECONDS) -> None:
        self.deadline, self.doing, self.received = deadline, doing, 0
        self.until = min(deadline.at, time.monotonic() + seconds)

    def check(self) -> None:
        """Raise when the run was cancelled, the time is over, or the answer grows without end."""
        if self.deadline.cancelled.is_set():
            self.deadline.check(self.doing)
        if time.monotonic() >= self.until:
            remedy = "reset the BMC, which takes connections and does not answer"
            raise NoAnswerError(f"no answer in time while {self.doing}", remedy=remedy)
        if self.received > MAX_ANSWER_BYTES:
            raise EdgeError(f"the answer is longer than {MAX_ANSWER_BYTES} bytes while {self.doing}")


class WatchedContext(ssl.SSLContext):
    """A client context whose sockets look at `watch` while they wait."""

    watch: Watch


class _TlsSocket(ssl.SSLSocket):
    def recv_into(self, buffer: Any, nbytes: int | None = None, flags: int = 0) -> int:
        watch = cast("WatchedContext", self.context).watch
        while True:
            watch.check()
            try:
                count = super().recv_into(buffer, nbytes, flags)
            except TimeoutError:
                continue
            watch.received += count
            return count


def watched(watch: Watch) -> WatchedContext:
    """A client context whose sockets look at `watch`; whom it believes is still to be said."""
    made = WatchedContext(ssl.PROTOCOL_TLS_CLIENT)
    made.watch = watch
    made.sslsocket_class = _TlsSocket
    return made


class Stopwatch:
    """`clock` is any monotonic seconds. What ends in an error tells nothing of how fast this BMC answers."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self.slowest = 0.0

    @contextmanager
    def answer(self) -> Iterator[None]:
        """Around one request and its answer."""
        began = self._clock()
        yield
        self.slowest = max(self.slowest, self._clock() - began)


_DROPPED = (
    ConnectionResetError,
    BrokenPipeError,
    RemoteDisconnected,
    IncompleteRead,
    ProtocolError,
    ssl.SSLEOFError,
    ssl.SSLZeroReturnError,
)


class DroppedError(NoAnswerError):
    """The BMC closed the connection instead of answering."""


def translated(error: BaseException, doing: str) -> ClusterctlError:
    """The libraries' error as one of ours, in our own words: theirs may hold requests and URLs."""
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
    reason = next((cause.strerror for cause in chain if isinstance(cause, OSError) and cause.strerror), "no connection")
    if isinstance(error, TimeoutError) or any(isinstance(cause, requests.exceptions.Timeout) for cause in chain):
        return UnreachableError("the BMC does not answer", remedy="check its power, its cable and its address")
    if isinstance(error, requests.exceptions.SSLError | ssl.SSLError):
        return EdgeError(f"no TLS with the BMC: {reason}", remedy="check that its HTTPS service speaks TLS 1.2")
    foreign = isinstance(error, requests.exceptions.RequestException)
    if isinstance(error, requests.exceptions.ConnectionError) or (isinstance(error, OSError) and not foreign):
        return UnreachableError(f"the BMC cannot be reached: {reason}", remedy="check its power, cable and address")
    return EdgeError(f"{type(error).__name__} while {doing}")


_PORTS = {"http": 80, "https": 443}


def base_url(address: BmcAddress) -> str:
    """Scheme, host and port of a BMC."""
    host = f"[{address.host}]" if ":" in address.host else address.host
    return f"{'http' if address.plain_http else 'https'}://{host}:{address.port}"


def adapter_for(address: BmcAddress, watch: Watch) -> HTTPAdapter:
    """Requests' transport to this BMC, whose sockets look at `watch` while they wait."""
    if address.plain_http:
        return _PlainAdapter(base_url(address), watch)
    return _TlsAdapter(base_url(address), Trust(address.ca_file, address.fingerprint), watch)


class _TlsAdapter(TrustingAdapter):
    """Sends to one BMC only: a redirect must not carry the session's token elsewhere."""

    def __init__(self, base_url: str, trust: Trust, watch: Watch) -> None:
        self._origin = _origin(base_url)
        super().__init__(trust, trust.context(watched(watch)), max_retries=0, pool_maxsize=1)

    def get_connection_with_tls_context(
        self, request: PreparedRequest, verify: Any, proxies: Any = None, cert: Any = None
    ) -> ConnectionPool:
        _require_origin(request, self._origin)
        return super().get_connection_with_tls_context(request, verify, proxies, cert)


class _PlainAdapter(HTTPAdapter):
    """The same without TLS."""

    def __init__(self, base_url: str, watch: Watch) -> None:
        self._origin = _origin(base_url)
        self._watch = watch
        super().__init__(max_retries=0, pool_maxsize=1)

    def init_poolmanager(self, connections: int, maxsize: int, block: bool = False, **pool: Any) -> None:
        super().init_poolmanager(connections, maxsize, block, **pool)
        self.poolmanager.pool_classes_by_scheme = {"http": self._pool}

    def get_connection_with_tls_context(
        self, request: PreparedRequest, verify: Any, proxies: Any = None, cert: Any = None
    ) -> ConnectionPool:
        _require_origin(request, self._origin)
        return super().get_connection_with_tls_context(request, verify, proxies, cert)

    def _pool(self, host: str, port: int | None = None, **options: Any) -> HTTPConnectionPool:
        pool = HTTPConnectionPool(host, port, **options)
        watch = self._watch

        class Connection(HTTPConnection):
            def _new_conn(self) -> socket.socket:
                return _PlainSocket.around(super()._new_conn(), watch)

        pool.ConnectionCls = Connection
        return pool


class _PlainSocket(socket.socket):
    """Waits in slices, as its sister of TLS does."""

    watch: Watch

    @classmethod
    def around(cls, other: socket.socket, watch: Watch) -> _PlainSocket:
        timeout = other.gettimeout()
        made = cls(fileno=other.detach())
        made.settimeout(timeout)
        made.watch = watch
        return made

    def recv_into(self, buffer: Any, nbytes: int = 0, flags: int = 0) -> int:
        while True:
            self.watch.check()
            try:
                count = super().recv_into(buffer, nbytes, flags)
            except TimeoutError:
                continue
            self.watch.received += count
            return count


def _require_origin(request: PreparedRequest, origin: tuple[str | None, str | None, int | None]) -> None:
    if _origin(request.url or "") != origin:
        raise EdgeError("the BMC sends us on to another host", remedy="check that this is a BMC's address")


def _origin(url: str) -> tuple[str | None, str | None, int | None]:
    """Scheme, host and port of a URL."""
    parts = parse_url(url)
    return parts.scheme, parts.host, parts.port or _PORTS.get(parts.scheme or "")
