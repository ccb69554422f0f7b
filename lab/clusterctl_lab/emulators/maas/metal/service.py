"""The lab's MAAS as a rack controller for virtual metal: DHCP, TFTP and HTTP, started and stopped together."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from aiohttp import web

from clusterctl.fleet.errors import EnvironmentBrokenError
from clusterctl_lab.emulators.maas.lifecycle import Lifecycle
from clusterctl_lab.emulators.maas.metal.boot_files import BootFiles
from clusterctl_lab.emulators.maas.metal.boot_service import BootService
from clusterctl_lab.emulators.maas.metal.dnsmasq import Dnsmasq, Served, configuration
from clusterctl_lab.emulators.maas.metal.web import application

PORT = 5248
"""Where MAAS's racks serve what machines boot."""


@dataclass(frozen=True, slots=True)
class Netting:
    """The lab by name, its interface that the machines hang on, and a folder for the configuration."""

    lab: str
    interface: str
    folder: Path


class MetalNetboot:
    """The listening services."""

    def __init__(self, runner: web.AppRunner, dnsmasq: Dnsmasq) -> None:
        self._runner = runner
        self._dnsmasq = dnsmasq

    async def close(self) -> None:
        await self._dnsmasq.close()
        await self._runner.cleanup()


async def serve_netboot(lifecycle: Lifecycle, files: BootFiles, netting: Netting) -> MetalNetboot:
    """Serve every machine of the world, on MAAS's address, which must exist on the interface. Raises
    `EnvironmentBrokenError` where a port or the interface is in use.
    """
    world = lifecycle.world
    base = f"http://{world.layout.maas}:{PORT}"
    runner = web.AppRunner(application(BootService(lifecycle, files, base), files), access_log=None)
    await runner.setup()
    dnsmasq = Dnsmasq(netting.lab)
    try:
        await _listen(runner, world.layout.maas)
        served = Served(netting.interface, files.tftp, f"{base}/boot.ipxe")
        file = netting.folder / "dnsmasq.conf"
        file.write_text(configuration(world.layout, world.machines.values(), served))
        await dnsmasq.start(file)
    except BaseException:
        await dnsmasq.close()
        await runner.cleanup()
        raise
    return MetalNetboot(runner, dnsmasq)


async def _listen(runner: web.AppRunner, address: str) -> None:
    try:
        await web.TCPSite(runner, address, PORT).start()
    except OSError as error:
        raise EnvironmentBrokenError(
            f"cannot serve what machines boot: {error.strerror}",
            where=f"{address}:{PORT}",
            remedy="End what listens there, or start the lab on another subnet.",
        ) from error
