"""Sockets of the lab's services, also in another network namespace than the daemon's.

A socket stays in the namespace in which it was made: only its making needs a thread that has entered that one.
"""

from __future__ import annotations

import ctypes
import os
import socket
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from ipaddress import ip_address
from pathlib import Path
from typing import Any

CLONE_NEWNET = 0x40000000
"""<linux/sched.h>; Python has `os.setns` from 3.12 on."""
OpenSocket = Callable[[str], socket.socket]
"""Returns a TCP socket from which to reach the address, or on which to bind it."""


def plain(address: str) -> socket.socket:
    """Return a TCP socket of this process's own network namespace."""
    family = socket.AF_INET6 if ip_address(address).version == 6 else socket.AF_INET
    return socket.socket(family, socket.SOCK_STREAM)


def within(namespace: Path, address: str) -> socket.socket:
    """Return a TCP socket of another network namespace. Raises OSError where it is not there."""
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(_entered, namespace, address).result()


def bound(opened: OpenSocket, address: str, port: int) -> socket.socket:
    """Return a socket that is bound to the address, to listen on. Raises OSError."""
    found = opened(address)
    try:
        found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        found.bind((address, port))
    except OSError:
        found.close()
        raise
    return found


def factory(opened: OpenSocket) -> Callable[[Any], socket.socket]:
    """Return what aiohttp opens its sockets by: it gets a row of getaddrinfo(3)."""
    return lambda found: opened(str(found[4][0]))


def _entered(namespace: Path, address: str) -> socket.socket:
    """Move this thread, which ends with it, into the namespace."""
    descriptor = os.open(namespace, os.O_RDONLY | os.O_CLOEXEC)
    try:
        if ctypes.CDLL(None, use_errno=True).setns(descriptor, CLONE_NEWNET):
            raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()), str(namespace))
    finally:
        os.close(descriptor)
    return plain(address)
