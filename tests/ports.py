"""TCP ports for the servers of tests, which nothing else takes before the server listens."""

from __future__ import annotations

import errno
import os
import socket
from contextlib import ExitStack
from itertools import chain

RANGE = range(20000, 29000)
"""Below the ports that the kernel gives to outgoing connections (`net.ipv4.ip_local_port_range`)."""
_reserved: list[socket.socket] = []
"""One abstract Unix socket per port, open as long as this process runs: its name is the reservation."""


def reserve_port(*addresses: str) -> int:
    """Return a port that is free at all of these addresses (at any, by default) and stays this process's own."""
    start = RANGE.start + os.getpid() * 17 % len(RANGE)
    for port in chain(range(start, RANGE.stop), range(RANGE.start, start)):
        if _reserve(port) and _free(port, addresses or ("",)):
            return port
    raise OSError(errno.EADDRINUSE, f"no free port among {RANGE}")


def _reserve(port: int) -> bool:
    name = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    try:
        name.bind(f"\0clusterctl-tests-port-{port}")
    except OSError:
        name.close()
        return False
    _reserved.append(name)
    return True


def _free(port: int, addresses: tuple[str, ...]) -> bool:
    with ExitStack() as stack:
        try:
            for address in addresses:
                stack.enter_context(socket.socket()).bind((address, port))
        except OSError as error:
            if error.errno != errno.EADDRINUSE:  # an address that this machine does not have
                raise
            return False
    return True
