"""The HTTP server of the installer service: uvicorn with limits for each connection and each address, also over TLS."""

from __future__ import annotations

import asyncio
import ssl
from asyncio.sslproto import SSLProtocol
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass

import uvicorn
from starlette.applications import Starlette
from uvicorn.protocols.http.h11_impl import H11Protocol

CLOSE_S = 3


@dataclass(frozen=True, slots=True)
class ConnectionLimits:
    """What one machine may hold of the service.

    shake_s  seconds until TLS has agreed on a key
    head_s   seconds until the head of a request has arrived
    write_s  seconds until the machine has taken what was written last, 1 MiB of a file at most
    per_host connections of one address at a time; iPXE and curl use one or two
    at_once  connections at a time of all addresses
    """

    shake_s: int = 30
    head_s: float = 15.0
    write_s: float = 120.0
    per_host: int = 32
    at_once: int = 4096


class OpenConnections:
    """The open connections by address. All run in the event loop's one thread."""

    def __init__(self, limits: ConnectionLimits) -> None:
        self._limits = limits
        self._by_host: Counter[str] = Counter()

    def add(self, transport: asyncio.BaseTransport) -> str | None:
        """Count a connection and return its address; None where there are too many, of this one or of all."""
        host = str((transport.get_extra_info("peername") or ("",))[0])
        if self._by_host[host] >= self._limits.per_host or self._by_host.total() >= self._limits.at_once:
            return None
        self._by_host[host] += 1
        return host

    def remove(self, host: str) -> None:
        self._by_host[host] -= 1
        self._by_host += Counter()  # forgets addresses without a connection


class LimitedConnection(H11Protocol):
    """One connection. It is dropped where it exceeds the limits: no head in time, a reply that is not read, or too many
    of its address; `open_connections` is None over TLS, where `LimitedTls` counts it.
    """

    limits = ConnectionLimits()
    open_connections: OpenConnections | None
    _head_timer: asyncio.TimerHandle | None = None
    _write_timer: asyncio.TimerHandle | None = None
    _counted: str | None = None

    @classmethod
    def within(cls, limits: ConnectionLimits, *, counting: bool = True) -> type[LimitedConnection]:
        """Return the class for the connections of one server."""
        counted = OpenConnections(limits) if counting else None
        return type(cls.__name__, (cls,), {"limits": limits, "open_connections": counted})

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        if self.open_connections is not None:
            self._counted = self.open_connections.add(transport)
            if self._counted is None:
                transport.abort()
                return
        self._await_head()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if self.cycle is None or self.cycle.response_complete:
            self._await_head()
        elif self._head_timer is not None:
            self._head_timer.cancel()
            self._head_timer = None

    def pause_writing(self) -> None:
        """Limit the time of a write that the machine does not take: `close` would wait for it, `abort` does not."""
        super().pause_writing()
        self._write_timer = self.loop.call_later(self.limits.write_s, self.transport.abort)

    def resume_writing(self) -> None:
        super().resume_writing()
        if self._write_timer is not None:
            self._write_timer.cancel()
            self._write_timer = None

    def connection_lost(self, exc: Exception | None) -> None:
        for timer in (self._head_timer, self._write_timer):
            if timer is not None:
                timer.cancel()
        if self._counted is not None and self.open_connections is not None:
            self.open_connections.remove(self._counted)
            self._counted = None
        super().connection_lost(exc)

    def _await_head(self) -> None:
        if self._head_timer is None:
            self._head_timer = self.loop.call_later(self.limits.head_s, self._drop)

    def _drop(self) -> None:
        self._head_timer = None
        if self.cycle is None or self.cycle.response_complete:
            self.transport.abort()


class LimitedTls(SSLProtocol):
    """TLS of one connection. It counts from its first byte on: a client that never agrees on a key holds a place."""

    def __init__(
        self, inner: LimitedConnection, context: ssl.SSLContext, counted: OpenConnections, limits: ConnectionLimits
    ) -> None:
        super().__init__(
            inner.loop,
            inner,
            context,
            None,  # type: ignore[arg-type] # asyncio itself passes none for accepted connections
            server_side=True,
            ssl_handshake_timeout=limits.shake_s,
            ssl_shutdown_timeout=CLOSE_S,
        )
        self._open_connections = counted
        self._counted: str | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._counted = self._open_connections.add(transport)
        if self._counted is None and isinstance(transport, asyncio.WriteTransport):
            transport.abort()
        super().connection_made(transport)

    def connection_lost(self, exc: BaseException | None) -> None:
        if self._counted is not None:
            self._open_connections.remove(self._counted)
            self._counted = None
        super().connection_lost(exc)


def _over_tls(context: ssl.SSLContext, limits: ConnectionLimits) -> Callable[..., asyncio.BaseProtocol]:
    """Return what makes the connections of one server over TLS."""
    counted, inner = OpenConnections(limits), LimitedConnection.within(limits, counting=False)
    return lambda **options: LimitedTls(inner(**options), context, counted, limits)


def server(
    app: Starlette, limits: ConnectionLimits = ConnectionLimits(), context: ssl.SSLContext | None = None
) -> uvicorn.Server:
    """Return the server, over TLS with a `context`. Everything that it needs is imported: the service may lose sight of
    its own files.
    """
    config = uvicorn.Config(
        app,
        http=LimitedConnection.within(limits),
        loop="asyncio",
        ws="none",
        access_log=False,  # tokens stand in paths
        log_config=None,
        lifespan="off",
        server_header=False,
        proxy_headers=False,
        timeout_keep_alive=15,
        timeout_graceful_shutdown=CLOSE_S,
    )
    config.load()
    if context is not None:
        config.http_protocol_class = _over_tls(context, limits)  # type: ignore[assignment]
    return uvicorn.Server(config)
