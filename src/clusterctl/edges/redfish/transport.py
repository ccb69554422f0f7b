"""How requests reach one BMC: over TLS to whom the site trusts, or over plain HTTP where the site says so; never
elsewhere.
"""

from __future__ import annotations

import socket
from typing import Any

from requests import PreparedRequest
from requests.adapters import HTTPAdapter
from urllib3.connection import HTTPConnection
from urllib3.connectionpool import ConnectionPool, HTTPConnectionPool
from urllib3.util import parse_url

from clusterctl.edges.redfish.patience import Watch, watched
from clusterctl.edges.tls import Trust, TrustingAdapter
from clusterctl.fleet.errors import EdgeError
from clusterctl.ports import BmcAddress

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
                return _PatientSocket.around(super()._new_conn(), watch)

        pool.ConnectionCls = Connection
        return pool


class _PatientSocket(socket.socket):
    """Waits in slices, as its sister of TLS does."""

    watch: Watch

    @classmethod
    def around(cls, other: socket.socket, watch: Watch) -> _PatientSocket:
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
