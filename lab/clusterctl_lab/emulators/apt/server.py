"""Serves the repositories over HTTP, as package mirrors do: what makes them trustworthy is the signature."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from aiohttp import web

from clusterctl.fleet.errors import EnvironmentBrokenError
from clusterctl_lab.emulators.apt.repository import REPOSITORIES


@dataclass(frozen=True, slots=True)
class AptServer:
    """A running server; `port` is the one it got where 0 was asked for."""

    address: str
    port: int
    runner: web.AppRunner

    async def close(self) -> None:
        await self.runner.cleanup()


async def serve_apt(root: Path, address: str, port: int = 80) -> AptServer:
    """Serve `root`, a folder that `ensure_repository` returned, on `address` until closed."""
    app = web.Application()
    for name in REPOSITORIES:
        app.router.add_static(f"/{name}", root / name)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    try:
        await web.TCPSite(runner, address, port).start()
    except OSError as error:
        await runner.cleanup()
        raise EnvironmentBrokenError(
            f"cannot serve the lab's packages: {error.strerror}",
            where=f"{address}:{port}",
            remedy="End what listens there, or start the lab on another subnet.",
        ) from error
    return AptServer(address, runner.addresses[0][1], runner)
