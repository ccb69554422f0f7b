"""Scans which addresses accept TCP connections on the BMCs' port: hundreds at once from one thread, nothing is sent."""

from __future__ import annotations

import enum
import errno
import os
import selectors
import socket
import time
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from ipaddress import ip_address

from clusterctl.fleet.errors import EnvironmentBrokenError
from clusterctl.ports import Deadline

WAIT_SECONDS = 2.5
"""Long enough for a lost SYN to be sent again after one second (RFC 6298)."""
AT_ONCE = 384
"""Below the 1,024 files that a process may have open, and the 1,024 neighbours that Linux keeps, by default."""
_SLICE_SECONDS = 0.1
_OURS = frozenset({errno.ENOBUFS, errno.EAGAIN, errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.EADDRNOTAVAIL})
"""Reasons on this side: the address is tried again once another has answered."""
_NO_ROUTE = frozenset({errno.ENETUNREACH, errno.EPERM, errno.EACCES, errno.EAFNOSUPPORT})


class TcpState(enum.Enum):
    """OPEN: a service listens. CLOSED: a machine without that service. SILENT: no answer. NO_ROUTE: none from here."""

    OPEN = "open"
    CLOSED = "closed"
    SILENT = "silent"
    NO_ROUTE = "no_route"


@dataclass(frozen=True, slots=True)
class _Connecting:
    host: str
    until: float


def scan_ports(
    hosts: Iterable[str], port: int, deadline: Deadline, *, wait_s: float = WAIT_SECONDS, at_once: int = AT_ONCE
) -> Iterator[tuple[str, TcpState]]:
    """Yield each host with its state as soon as it is known. Raises as `Deadline.check`; leaves no connection open."""
    waiting = iter(hosts)
    again: list[str] = []
    with ExitStack() as stack:
        selector = stack.enter_context(selectors.DefaultSelector())
        stack.callback(_close_all, selector)
        while True:
            deadline.check("looking for BMCs")
            while len(selector.get_map()) < at_once:
                host = again.pop() if again else next(waiting, None)
                if host is None:
                    break
                found = _connect(selector, host, port, time.monotonic() + wait_s)
                if isinstance(found, TcpState):
                    yield host, found
                elif found is not None:
                    _require_others(selector, host, found)
                    again.append(host)
                    break
            if not selector.get_map():
                return
            yield from _finished(selector)


def _connect(selector: selectors.BaseSelector, host: str, port: int, until: float) -> TcpState | OSError | None:
    """Begin a connection. Return its state where that is known at once, the error of this side, or None: under way."""
    family = socket.AF_INET6 if ip_address(host).version == 6 else socket.AF_INET
    try:
        plain = socket.socket(family, socket.SOCK_STREAM | socket.SOCK_NONBLOCK | socket.SOCK_CLOEXEC)
    except OSError as error:
        return error if error.errno in _OURS else TcpState.NO_ROUTE
    code = plain.connect_ex((host, port))
    if code == errno.EINPROGRESS:
        selector.register(plain, selectors.EVENT_WRITE, _Connecting(host, until))
        return None
    plain.close()
    return OSError(code, os.strerror(code)) if code in _OURS else _state(code)


def _finished(selector: selectors.BaseSelector) -> Iterator[tuple[str, TcpState]]:
    """Yield the hosts that answer within a moment, and those that were waited for long enough."""
    ready = selector.select(_SLICE_SECONDS)
    now = time.monotonic()
    done = {key.fd: key for key, _ in ready}
    late = [key for key in selector.get_map().values() if key.data.until <= now and key.fd not in done]
    for key in (*done.values(), *late):
        plain = key.fileobj
        if not isinstance(plain, socket.socket):
            continue
        code = plain.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR) if key.fd in done else errno.ETIMEDOUT
        selector.unregister(plain)
        plain.close()
        yield key.data.host, _state(code)


def _state(code: int) -> TcpState:
    if code == 0:
        return TcpState.OPEN
    if code in (errno.ECONNREFUSED, errno.ECONNRESET):
        return TcpState.CLOSED
    return TcpState.NO_ROUTE if code in _NO_ROUTE else TcpState.SILENT


def _require_others(selector: selectors.BaseSelector, host: str, error: OSError) -> None:
    """Raise where no other connection is under way: waiting would not help."""
    if not selector.get_map():
        remedy = "raise the limit of open files (ulimit -n) or of neighbours (net.ipv4.neigh.default.gc_thresh3)"
        raise EnvironmentBrokenError(f"no connection can be made: {error.strerror}", where=host, remedy=remedy)


def _close_all(selector: selectors.BaseSelector) -> None:
    for key in list(selector.get_map().values()):
        if isinstance(key.fileobj, socket.socket):
            key.fileobj.close()
