"""The HTTP server of the installer service: uvicorn with limits for each connection and each address."""

from __future__ import annotations

import asyncio
from collections import Counter
from dataclasses import dataclass

import uvicorn
from starlette.applications import Starlette
from uvicorn.protocols.http.h11_impl import H11Protocol

CLOSE_S = 3


@dataclass(frozen=True, slots=True)
class ConnectionLimits:
    """What one machine may hold of the service.

    head_s   seconds until the head of a request has arrived
    write_s  seconds until the machine has taken what was written last, 1 MiB of a file at most
    per_host connections of one address at a time; iPXE and curl use one or two
    at_once  connections at a time of all addresses
    """

    head_s: float = 15.0
    write_s: float = 120.0
    per_host: int = 32
    at_once: int = 4096


class LimitedConnection(H11Protocol):
    """One connection. It is dropped where it exceeds the limits: no head in time, a reply that is not read, or too many
    of its address.

    All connections run in the event loop's one thread.
    """

    limits = ConnectionLimits()
    open_by_host: Counter[str]
    _head_timer: asyncio.TimerHandle | None = None
    _write_timer: asyncio.TimerHandle | None = None
    _counted = ""

    @classmethod
    def within(cls, limits: ConnectionLimits) -> type[LimitedConnection]:
        """Return the class for the connections of one server."""
        return type(cls.__name__, (cls,), {"limits": limits, "open_by_host": Counter()})

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        host = self.client[0] if self.client else ""
        if self.open_by_host[host] >= self.limits.per_host or self.open_by_host.total() >= self.limits.at_once:
            transport.abort()
            return
        self._counted = host
        self.open_by_host[host] += 1
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
        if self._counted:
            self.open_by_host[self._counted] -= 1
            self.open_by_host += Counter()  # forgets addresses without a connection
            self._counted = ""
        super().connection_lost(exc)

    def _await_head(self) -> None:
        if self._head_timer is None:
            self._head_timer = self.loop.call_later(self.limits.head_s, self._drop)

    def _drop(self) -> None:
        self._head_timer = None
        if self.cycle is None or self.cycle.response_complete:
            self.transport.abort()


def server(app: Starlette, limits: ConnectionLimits = ConnectionLimits()) -> uvicorn.Server:
    """Return the server. Everything that it needs is imported: the service may lose sight of its own files."""
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
    return uvicorn.Server(config)
