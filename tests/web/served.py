"""The page of a site, served as `clusterctl web` does, on a port of this machine."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from clusterctl.operations.context import SiteContext
from clusterctl_web.service import serve

WAIT_S = 600.0


@contextmanager
def page(context: SiteContext) -> Iterator[str]:
    """Serve the page; yield its address, without the token of this start."""
    with entered(context) as address:
        yield address.partition("/?")[0]


@contextmanager
def entered(context: SiteContext) -> Iterator[str]:
    """Serve the page; yield the address that signs in."""
    stop, ready, address = threading.Event(), threading.Event(), []

    def found(given: str) -> None:
        address.append(given)
        ready.set()

    thread = threading.Thread(target=serve, args=(context, "127.0.0.1:0", found, stop))
    thread.start()
    try:
        assert ready.wait(WAIT_S)
        yield address[0]
    finally:
        stop.set()
        thread.join(WAIT_S)
