"""Client sockets that ask a limit while they wait for bytes of a peer.

`requests` and `http.client` know only a time-out for each receipt: a peer that sends a byte at a time holds a request
for days, in its headers, its trailers and its chunk lengths as well as in its body. All arrive through `recv_into`.
"""

from __future__ import annotations

import socket
import ssl
from collections.abc import Callable
from typing import Any, Protocol, cast

from urllib3.connection import HTTPConnection
from urllib3.connectionpool import HTTPConnectionPool

from clusterctl.edges.tls import Trust

SLICE_SECONDS = 0.25
"""Time-out of one receipt: the limit is asked this often while a peer sends nothing."""


class ReceiveLimit(Protocol):
    """Limits of the answer that a socket receives."""

    def receive(self, read: Callable[[], int]) -> int:
        """Call `read` until it returns a count of bytes; its `TimeoutError`s only mean that a slice is over."""
        ...


class _LimitedContext(ssl.SSLContext):
    """A client context with sockets that ask `limit`, and report the certificate of each peer that proved it."""

    limit: ReceiveLimit
    proven: Callable[[bytes], None]


class _TlsSocket(ssl.SSLSocket):
    def do_handshake(self, block: bool = False) -> None:
        super().do_handshake(block)
        cast("_LimitedContext", self.context).proven(self.getpeercert(binary_form=True) or b"")

    def recv_into(self, buffer: Any, nbytes: int | None = None, flags: int = 0) -> int:
        read = super().recv_into
        return cast("_LimitedContext", self.context).limit.receive(lambda: read(buffer, nbytes, flags))


class _PlainSocket(socket.socket):
    limit: ReceiveLimit

    @classmethod
    def around(cls, other: socket.socket, limit: ReceiveLimit) -> _PlainSocket:
        timeout = other.gettimeout()
        made = cls(fileno=other.detach())
        made.settimeout(timeout)
        made.limit = limit
        return made

    def recv_into(self, buffer: Any, nbytes: int = 0, flags: int = 0) -> int:
        read = super().recv_into
        return self.limit.receive(lambda: read(buffer, nbytes, flags))


def limited_context(
    trust: Trust, limit: ReceiveLimit, proven: Callable[[bytes], None] = lambda _certificate: None
) -> ssl.SSLContext:
    """Return a new context for `TrustingAdapter`, whose sockets ask `limit`.

    `proven` gets the certificate (DER) of each peer after the handshake: the peer has its key.
    """
    context = _LimitedContext(ssl.PROTOCOL_TLS_CLIENT)
    context.limit = limit
    context.proven = proven
    context.sslsocket_class = _TlsSocket
    return trust.context(context)


def limited_pool(limit: ReceiveLimit) -> Callable[..., HTTPConnectionPool]:
    """Return what makes pools of connections without TLS, whose sockets ask `limit`."""

    class Connection(HTTPConnection):
        def _new_conn(self) -> socket.socket:
            return _PlainSocket.around(super()._new_conn(), limit)

    def pool(host: str, port: int | None = None, **options: Any) -> HTTPConnectionPool:
        made = HTTPConnectionPool(host, port, **options)
        made.ConnectionCls = Connection
        return made

    return pool
