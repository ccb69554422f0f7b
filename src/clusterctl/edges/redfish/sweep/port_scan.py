"""Which addresses take TCP connections on the BMCs' port: hundreds asked at once from one thread, nothing sent."""

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
"""Reasons on this side: the address is asked again once another has answered."""
_NO_ROUTE = frozenset({errno.ENETUNREACH, errno.EPERM, errno.EACCES, errno.EAFNOSUPPORT})


class Door(enum.Enum):
    """What a knock finds: somebody listens; a machine without that service; nobody; no way from here."""

    OPEN = "open"
    CLOSED = "closed"
    SILENT = "silent"
    NO_ROUTE = "no_route"


@dataclass(frozen=True, slots=True)
class _Knock:
    host: str
    until: float


def knock(
    hosts: Iterable[str], port: int, deadline: Deadline, *, wait_s: float = WAIT_SECONDS, at_once: int = AT_ONCE
) -> Iterator[tuple[str, Door]]:
    """Each host with its door, as it is known; raises as `Deadline.check`, and leaves no connection open."""
    waiting = iter(hosts)
    again: list[str] = []
    with ExitStack() as stack:
        selector = stack.enter_context(selectors.DefaultSelector())
        stack.callback(_hang_up, selector)
        while True:
            deadline.check("looking for BMCs")
            while len(selector.get_map()) < at_once:
                host = again.pop() if again else next(waiting, None)
                if host is None:
                    break
                found = _begin(selector, host, port, time.monotonic() + wait_s)
                if isinstance(found, Door):
                    yield host, found
                elif found is not None:
                    _require_others(selector, host, found)
                    again.append(host)
                    break
            if not selector.get_map():
                return
            yield from _answered(selector)


def _begin(selector: selectors.BaseSelector, host: str, port: int, until: float) -> Door | OSError | None:
    """The door where it is known at once, the error where we cannot ask now, None where the answer is to come."""
    family = socket.AF_INET6 if ip_address(host).version == 6 else socket.AF_INET
    try:
        plain = socket.socket(family, socket.SOCK_STREAM | socket.SOCK_NONBLOCK | socket.SOCK_CLOEXEC)
    except OSError as error:
        return error if error.errno in _OURS else Door.NO_ROUTE
    code = plain.connect_ex((host, port))
    if code == errno.EINPROGRESS:
        selector.register(plain, selectors.EVENT_WRITE, _Knock(host, until))
        return None
    plain.close()
    return OSError(code, os.strerror(code)) if code in _OURS else _door(code)


def _answered(selector: selectors.BaseSelector) -> Iterator[tuple[str, Door]]:
    """Those that answer within a moment, and those that were waited for long enough."""
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
        yield key.data.host, _door(code)


def _door(code: int) -> Door:
    if code == 0:
        return Door.OPEN
    if code in (errno.ECONNREFUSED, errno.ECONNRESET):
        return Door.CLOSED
    return Door.NO_ROUTE if code in _NO_ROUTE else Door.SILENT


def _require_others(selector: selectors.BaseSelector, host: str, error: OSError) -> None:
    """Where nobody else is being asked, waiting would not help."""
    if not selector.get_map():
        remedy = "raise the limit of open files (ulimit -n) or of neighbours (net.ipv4.neigh.default.gc_thresh3)"
        raise EnvironmentBrokenError(f"no connection can be made: {error.strerror}", where=host, remedy=remedy)


def _hang_up(selector: selectors.BaseSelector) -> None:
    for key in list(selector.get_map().values()):
        if isinstance(key.fileobj, socket.socket):
            key.fileobj.close()
