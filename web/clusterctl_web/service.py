"""Serves the page until it is stopped: over plain HTTP on a loopback address, over TLS on others."""

from __future__ import annotations

import gc
import logging
import secrets
import socket
import ssl
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta
from ipaddress import ip_address
from threading import Event, Thread

import anyio.to_thread
import uvicorn

from clusterctl.fleet.errors import ClusterctlError, EnvironmentBrokenError, UsageError
from clusterctl.operations.context import SiteContext, current_user, on_replica
from clusterctl.operations.job_watchers import keep_watched
from clusterctl.operations.metrics import FleetMetrics
from clusterctl.operations.web_access import identity_provider, tls_context, web_accounts
from clusterctl_web.app import application
from clusterctl_web.live_fleet import LiveFleet
from clusterctl_web.rendering import tile_html
from clusterctl_web.sessions import SignInRules, StartToken

logger = logging.getLogger(__name__)

AT_ONCE = 256
"""Connections at a time; each open page holds one for its changes."""
THREADS = 8
"""Requests that are answered at the same time: more would only take memory."""
WATCHERS_S = 30.0
"""Seconds between two looks for runs without a watcher."""
LOOPBACK_NAMES = ("localhost", "127.0.0.1", "[::1]")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Place:
    """Where the page is served. `names`: what the page may be called by; `tls`: None on a loopback address."""

    host: str
    port: int
    names: tuple[str, ...] = LOOPBACK_NAMES
    tls: ssl.SSLContext | None = None


class _Server(uvicorn.Server):
    """Answers a few requests at the same time; the others wait."""

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        anyio.to_thread.current_default_thread_limiter().total_tokens = THREADS
        await super().startup(sockets)


def serve(context: SiteContext, listen: str, ready: Callable[[str], None], stopped: Event) -> None:
    """Serve until `stopped`; `ready` gets the address, with its token on a loopback address.

    Raises `UsageError`, `EnvironmentBrokenError`.
    """
    place = _place(context, listen)
    listener = _listener(place, listen)
    port = listener.getsockname()[1]
    access = _access(context, place, port)
    reading = on_replica(context)
    fleet, figures = LiveFleet(context, reading), FleetMetrics(reading)
    _keep()
    tls = place.tls
    config = uvicorn.Config(
        application(fleet, access, figures), log_level="warning", access_log=False, limit_concurrency=AT_ONCE,
        server_header=False, lifespan="off", timeout_graceful_shutdown=2, proxy_headers=False,
        ssl_context_factory=(lambda _config, _default: tls) if tls is not None else None,
    )  # fmt: skip
    server = _Server(config)
    with listener:
        thread = Thread(target=server.run, kwargs={"sockets": [listener]}, name="web", daemon=True)
        thread.start()
        ready(_address(place, port, access))
        reader = Thread(target=_read, args=(fleet, figures, stopped), name="figures", daemon=True)
        reader.start()
        Thread(target=_watch_jobs, args=(context, stopped), name="job watchers", daemon=True).start()
        while not stopped.wait(0.2) and thread.is_alive():
            pass
        server.should_exit = True
        thread.join(5)
        reader.join(5)
        figures.keep()


def _draw(fleet: LiveFleet, stopped: Event) -> None:
    """Read the fleet, and make each tile: a reader who comes at once makes those that are still missing."""
    for rack in fleet.racks():
        for tile in rack.tiles:
            tile_html(tile)
        if stopped.is_set():
            return


def _read(fleet: LiveFleet, figures: FleetMetrics, stopped: Event) -> None:
    """Read the fleet and the figures of all nodes, so that neither the first page nor the first scrape waits for it.

    Not before the service answers: with 32,768 nodes that takes as long as everything else at its start.
    """
    with suppress(ClusterctlError):  # a request for them reports it
        _draw(fleet, stopped)
        figures.read_all(stopped.is_set)
        figures.keep()
    gc.collect()
    _keep()


def _keep() -> None:
    """Take what is there now out of the garbage collector's sight: it lasts as long as the service.

    A full collection looks at each object: 0.14 s with 1,024 nodes (measured), for which all pages wait.
    """
    gc.freeze()


def _watch_jobs(context: SiteContext, stopped: Event) -> None:
    """Start the watchers of users' runs again that are gone: the controller was started again, or they were killed."""
    while not stopped.wait(WATCHERS_S):
        try:
            keep_watched(context)
        except ClusterctlError as error:
            logger.warning("Watchers of jobs were not started: %s", error)


def _access(context: SiteContext, place: _Place, port: int) -> SignInRules:
    """Return who may come in. On other addresses than loopback it is users, tokens and the provider alone."""
    settings = context.site.settings.web
    start = StartToken(secret=secrets.token_urlsafe(24), actor=current_user()) if place.tls is None else None
    access = SignInRules(
        accounts=web_accounts(context.site),
        provider=identity_provider(context.site),
        start=start,
        hosts=place.names,
        tls=place.tls is not None,
        cookie=f"clusterctl-{port}",  # cookies do not know ports: two sites on one controller have two names
        lifetime=timedelta(hours=settings.session_hours),
        idle=timedelta(minutes=settings.idle_minutes),
    )
    if start is None and access.provider is None and not access.accounts.users() and not access.accounts.tokens():
        remedy = "add a user first: clusterctl web user add NAME --role admin; or name a provider: web.oidc"
        raise UsageError("no user may sign in", where=f"port {port}", remedy=remedy)
    return access


def _listener(place: _Place, listen: str) -> socket.socket:
    try:
        family = socket.AF_INET6 if ":" in place.host else socket.AF_INET
        return socket.create_server((place.host, place.port), family=family)
    except OSError as error:
        remedy = "choose another port with --listen, or stop the program that has this one"
        raise EnvironmentBrokenError(f"cannot listen: {error.strerror}", where=listen, remedy=remedy) from None


def _address(place: _Place, port: int, access: SignInRules) -> str:
    """Return what to open in a browser."""
    if place.tls is not None:
        name = next((name for name in place.names if not name.startswith("*")), place.names[0])
        return f"https://{name}:{port}/"
    shown = f"[{place.host}]" if ":" in place.host else place.host
    token = f"?token={access.start.secret}" if access.start else ""
    return f"http://{shown}:{port}/{token}"


def _place(context: SiteContext, listen: str) -> _Place:
    """Return where `ADDRESS:PORT` or `PORT` is. Raises `UsageError`: another address than loopback needs TLS."""
    text, _, port = listen.rpartition(":")
    host = text.removeprefix("[").removesuffix("]") or "127.0.0.1"
    remedy = "give an address of this machine and a port: 127.0.0.1:8080, 0.0.0.0:8443"
    if not port.isdecimal() or int(port) > 65535:
        raise UsageError("is no port", where=listen, remedy=remedy)
    try:
        loopback = ip_address(host).is_loopback
    except ValueError:
        raise UsageError("is no address", where=listen, remedy=remedy) from None
    if loopback:
        return _Place(host=host, port=int(port))
    if not context.site.settings.web.certificate:
        remedy = (
            "name web.certificate and web.private_key in site.yml; or serve 127.0.0.1:PORT, and forward it: "
            "ssh -L 8080:127.0.0.1:8080 controller"
        )
        raise UsageError("only a loopback address is served without a certificate", where=listen, remedy=remedy)
    tls, names = tls_context(context.site)
    return _Place(host=host, port=int(port), names=names, tls=tls)
