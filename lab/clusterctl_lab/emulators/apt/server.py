"""Serves the repositories over HTTP, as package mirrors do: what makes them trustworthy is the signature."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from aiohttp import web

from clusterctl.fleet.errors import EnvironmentBrokenError
from clusterctl_lab.emulators.apt.repository import DEBIAN, KEY, REPOSITORIES
from clusterctl_lab.sockets import OpenSocket, bound, plain

KEYRING = "/etc/apt/keyrings/clusterctl-lab.asc"

_APT = """\
// Of the rehearsal lab: no translations to ask for, no proxy, and a missing server is noticed soon.
Acquire::Languages "none";
Acquire::http::Proxy "DIRECT";
Acquire::http::Timeout "20";
Acquire::Retries "2";
"""

_DPKG = """\
# Of the rehearsal lab: what a host loses in a crash is written again.
force-unsafe-io
"""


def url(name: str, address: str, port: int) -> str:
    return f"http://{address}/{name}/" if port == 80 else f"http://{address}:{port}/{name}/"


def host_files(root: Path, address: str, port: int = 80) -> Mapping[str, tuple[bytes, int]]:
    """Return absolute path → content and mode: the distribution's packages come from `root` as served on `address`."""
    sources = f"Types: deb\nURIs: {url(DEBIAN, address, port)}\nSuites: /\nSigned-By: {KEYRING}\n"
    return {
        "/etc/apt/sources.list.d/lab.sources": (sources.encode(), 0o644),
        KEYRING: ((root / KEY).read_bytes(), 0o644),
        "/etc/apt/apt.conf.d/90lab": (_APT.encode(), 0o644),
        "/etc/dpkg/dpkg.cfg.d/90lab": (_DPKG.encode(), 0o644),
    }


def vendor_repository(vendor: str, root: Path, address: str, port: int = 80) -> tuple[str, str]:
    """Return URL and ASCII-armoured public key of the stand-in for a vendor's repository; `vendor` is a key of
    `VENDORS`.
    """
    return url(vendor, address, port), (root / KEY).read_text(encoding="ascii")


@dataclass(frozen=True, slots=True)
class AptServer:
    """A running server; `port` is the assigned port where 0 was requested."""

    address: str
    port: int
    runner: web.AppRunner

    async def close(self) -> None:
        await self.runner.cleanup()


async def serve_apt(root: Path, address: str, port: int = 80, opened: OpenSocket = plain) -> AptServer:
    """Serve `root`, a folder that `ensure_repository` returned, on `address` until closed.

    `opened` opens the socket.
    """
    app = web.Application()
    for name in REPOSITORIES:
        app.router.add_static(f"/{name}", root / name)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    try:
        await web.SockSite(runner, await asyncio.to_thread(bound, opened, address, port)).start()
    except OSError as error:
        await runner.cleanup()
        raise EnvironmentBrokenError(
            f"cannot serve the lab's packages: {error.strerror}",
            where=f"{address}:{port}",
            remedy="End what listens there, or start the lab on another subnet.",
        ) from error
    return AptServer(address, runner.addresses[0][1], runner)
