"""Serves the page on a loopback address until it is stopped."""

from __future__ import annotations

import secrets
import socket
from collections.abc import Callable
from ipaddress import ip_address
from threading import Event, Thread

import uvicorn

from clusterctl.fleet.errors import EnvironmentBrokenError, UsageError
from clusterctl.operations.context import SiteContext
from clusterctl_web.app import application
from clusterctl_web.live_fleet import LiveFleet

AT_ONCE = 256
"""Connections at a time; each open page holds one for its changes."""


def serve(context: SiteContext, listen: str, ready: Callable[[str], None], stopped: Event) -> None:
    """Serve until `stopped`; `ready` gets the address with its token. Raises `UsageError`, `EnvironmentBrokenError`."""
    host, port = _loopback(listen)
    try:
        listener = socket.create_server((host, port), family=socket.AF_INET6 if ":" in host else socket.AF_INET)
    except OSError as error:
        remedy = "choose another port with --listen, or stop the program that has this one"
        raise EnvironmentBrokenError(f"cannot listen: {error.strerror}", where=listen, remedy=remedy) from None
    token = secrets.token_urlsafe(24)
    fleet = LiveFleet(context)
    fleet.refresh()
    app = application(fleet, token)
    config = uvicorn.Config(
        app, log_level="warning", access_log=False, limit_concurrency=AT_ONCE, server_header=False, lifespan="off",
        timeout_graceful_shutdown=2,
    )  # fmt: skip
    server = uvicorn.Server(config)
    with listener:
        thread = Thread(target=server.run, kwargs={"sockets": [listener]}, name="web", daemon=True)
        thread.start()
        shown = f"[{host}]" if ":" in host else host
        ready(f"http://{shown}:{listener.getsockname()[1]}/?token={token}")
        while not stopped.wait(0.2) and thread.is_alive():
            pass
        server.should_exit = True
        thread.join(5)


def _loopback(listen: str) -> tuple[str, int]:
    """Return host and port of `ADDRESS:PORT` or `PORT`."""
    text, _, port = listen.rpartition(":")
    host = text.removeprefix("[").removesuffix("]") or "127.0.0.1"
    remedy = "give 127.0.0.1:PORT; from another machine, forward it: ssh -L 8080:127.0.0.1:8080 controller"
    try:
        loopback = ip_address(host).is_loopback
    except ValueError:
        loopback = False
    if not loopback:
        raise UsageError("only a loopback address is served: the page has no sign-in", where=listen, remedy=remedy)
    if not port.isdecimal() or int(port) > 65535:
        raise UsageError("is no port", where=listen, remedy=remedy)
    return host, int(port)
