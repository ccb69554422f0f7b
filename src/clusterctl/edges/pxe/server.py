"""The HTTP service on its address, in a thread of the running command; and the network of that address."""

from __future__ import annotations

import asyncio
import ipaddress
import json
import socket
import threading
import time
from collections import Counter
from dataclasses import dataclass

import uvicorn
from starlette.applications import Starlette
from uvicorn.protocols.http.h11_impl import H11Protocol

from clusterctl.edges.processes import Surroundings, run
from clusterctl.fleet.errors import EnvironmentBrokenError
from clusterctl.ports import Deadline

SILENT_S = 90
"""Seconds without an acknowledgement after which a connection is dropped: a machine that lost its power during a
download frees its slot."""
START_S = 60.0
CLOSE_S = 3


@dataclass(frozen=True, slots=True)
class ConnectionLimits:
    """What one machine may hold of the service.

    head_s   seconds until the head of a request has arrived
    per_host connections of one address at a time; iPXE and curl use one or two
    at_once  connections at a time of all addresses
    """

    head_s: float = 15.0
    per_host: int = 32
    at_once: int = 4096


class LimitedConnection(H11Protocol):
    """One connection. It is dropped where it exceeds the limits: no head in time, or too many of its address.

    All connections run in the event loop's one thread.
    """

    limits = ConnectionLimits()
    open_by_host: Counter[str]
    _head_timer: asyncio.TimerHandle | None = None
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

    def connection_lost(self, exc: Exception | None) -> None:
        if self._head_timer is not None:
            self._head_timer.cancel()
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


class Server:
    """Serves until `close`. Raises `EnvironmentBrokenError` where the address is not available."""

    def __init__(self, app: Starlette, address: str, port: int, limits: ConnectionLimits = ConnectionLimits()) -> None:
        self._socket = listen(address, port)
        self.port: int = self._socket.getsockname()[1]
        config = uvicorn.Config(
            app,
            http=LimitedConnection.within(limits),
            ws="none",
            access_log=False,  # tokens stand in paths
            log_config=None,
            lifespan="off",
            server_header=False,
            timeout_keep_alive=15,
            timeout_graceful_shutdown=CLOSE_S,
        )
        self._server = uvicorn.Server(config)
        self._thread = threading.Thread(target=self._serve, name="pxe-http", daemon=True)
        self._thread.start()
        self._await_start(address)

    def close(self) -> None:
        """Finish running requests for a few seconds. A machine with an interrupted download asks again."""
        self._server.should_exit = True
        self._thread.join(4 * CLOSE_S)
        self._socket.close()

    @property
    def alive(self) -> bool:
        return self._thread.is_alive()

    def _serve(self) -> None:
        self._server.run(sockets=[self._socket])

    def _await_start(self, address: str) -> None:
        until = time.monotonic() + START_S
        while not self._server.started:
            if not self._thread.is_alive() or time.monotonic() > until:
                raise EnvironmentBrokenError(
                    "the HTTP service did not start", where=f"{address}:{self.port}", remedy="run it again with -v"
                )
            time.sleep(0.02)


def listen(address: str, port: int) -> socket.socket:
    """Return a listening socket; port 0 is any free port."""
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    sock = socket.socket(family, socket.SOCK_STREAM)
    try:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, SILENT_S * 1000)  # its connections inherit it
        sock.bind((address, port))
        sock.listen(1024)
    except OSError as error:
        sock.close()
        raise EnvironmentBrokenError(
            f"cannot serve there: {error.strerror}",
            where=f"{address}:{port}",
            remedy="give provisioning an address of this controller and a free port",
        ) from None
    return sock


SECONDS = 30


def network_of(interface: str, address: str) -> ipaddress.IPv4Network:
    """Return the network of this address on the interface (iproute2). Raises `EnvironmentBrokenError`."""
    argv = ("ip", "-json", "-4", "address", "show", "dev", interface)
    ran = run(argv, Deadline.after(SECONDS), Surroundings(missing="install iproute2"))
    if ran.exit_status != 0:
        raise _missing(interface, ran.stderr.strip() or "there is no such interface")
    return found_in(ran.stdout, interface, address)


def found_in(text: str, interface: str, address: str) -> ipaddress.IPv4Network:
    """Return the network of the address in the output of `ip -json address show`."""
    listed = [item for link in json.loads(text or "[]") for item in link.get("addr_info", [])]
    for item in listed:
        if item.get("local") == address:
            return ipaddress.IPv4Interface(f"{address}/{item['prefixlen']}").network
    has = ", ".join(f"{item['local']}/{item['prefixlen']}" for item in listed) or "no address"
    raise _missing(interface, f"it has {has}, not {address}")


def _missing(interface: str, why: str) -> EnvironmentBrokenError:
    return EnvironmentBrokenError(
        why,
        where=f"interface {interface}",
        remedy="assign provisioning.address to it, or correct provisioning.interface and .address in site.yml",
    )
