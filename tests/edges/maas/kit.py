"""What the MAAS tests share: a lab with BMCs and MAAS on loopback addresses, hosts that record what was written, a key."""

from __future__ import annotations

import datetime as dt
from collections.abc import Coroutine
from dataclasses import dataclass, field, replace
from ipaddress import IPv4Network
from pathlib import Path
from typing import Any

from clusterctl.edges.maas import MaasInstaller, MaasSettings
from clusterctl.fleet.node import Mac, Serial
from clusterctl.ports import BmcAddress, Deadline, InstallState, InstallTarget
from clusterctl_lab.emulators.maas import LabMaas, serve_maas
from clusterctl_lab.emulators.redfish import BmcServers, serve_bmcs
from clusterctl_lab.healthy import build
from clusterctl_lab.layout import Layout
from clusterctl_lab.machine import Machine
from clusterctl_lab.world import Delays, World
from lab.tests.loop_thread import LoopThread
from tests.edges.maas.testca import Ca
from tests.ports import reserve_port

BMC_PORT, MAAS_PORT = reserve_port(), reserve_port()
API_KEY = "consumerkey:tokenkey:secretkey"
BMC_PASSWORD = "of-no-use-elsewhere"
QUICK = Delays(power_off=0.01, post=0.02, commission=0.05, write_os=0.05, netboot_timeout=60, slow_request=0.3)
PUBLIC = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIExample"
PRIVATE = "-----BEGIN OPENSSH PRIVATE KEY-----\nbm90IGEga2V5\n-----END OPENSSH PRIVATE KEY-----\n"


@dataclass
class UtcClock:
    """`ahead` of the true time."""

    ahead: dt.timedelta = dt.timedelta()

    def now(self) -> dt.datetime:
        return dt.datetime.now(dt.UTC) + self.ahead


@dataclass
class Hosts:
    """Meets `HostFace`: remembers what was written to which machine's disk."""

    written: dict[str, list[tuple[str, bytes]]] = field(default_factory=dict)
    broken: set[str] = field(default_factory=set)

    def installed(self, machine: Machine) -> bool:
        return machine.name in self.written

    async def install(self, machine: Machine, disk_serial: str, user_data: bytes) -> None:
        if machine.name in self.broken:
            raise OSError("disk is read-only")
        self.written.setdefault(machine.name, []).append((disk_serial, user_data))

    async def erase(self, machine: Machine) -> None:
        self.written.pop(machine.name, None)

    async def boot(self, machine: Machine) -> None:
        pass

    async def halt(self, machine: Machine) -> None:
        pass


class Lab:
    """BMCs and MAAS in one asyncio loop of their own thread, as in the lab daemon."""

    def __init__(self, directory: Path, machines: int = 1, network: str = "127.91.0.0/16") -> None:
        self.ca = Ca(directory)
        layout = Layout(IPv4Network(network))
        built = [build(index, layout, BMC_PASSWORD) for index in range(1, machines + 1)]
        self.world = World(layout, {machine.name: machine for machine in built}, QUICK)
        self.hosts = Hosts()
        self.world.hosts = self.hosts
        self._loop = LoopThread()
        self.maas, self._bmcs = self.run(self._serve())

    async def _serve(self) -> tuple[LabMaas, BmcServers]:
        bmcs = await serve_bmcs(self.world, self.ca.server_context, BMC_PORT)
        maas = await serve_maas(self.world, self.ca.server_context, API_KEY, port=MAAS_PORT, bmc_ca=self.ca.file)
        return maas, bmcs

    def run(self, work: Coroutine[Any, Any, Any]) -> Any:
        return self._loop.run(work)

    def rejected(self, name: str = "node001") -> int:
        """Return how many wrong logins the machine's BMC has seen."""
        return self._bmcs.rejected(name)

    def close(self) -> None:
        self.run(self.maas.close())
        self.run(self._bmcs.close())
        self._loop.close()

    def lose_patience(self, seconds: float) -> None:
        """How long MAAS waits for a machine from now on."""
        self.world.delays = replace(self.world.delays, netboot_timeout=seconds)

    def target(self, name: str = "node001", **changes: Any) -> InstallTarget:
        machine = self.world.machines[name]
        fields: dict[str, Any] = {
            "name": name,
            "serial": Serial(machine.serial),
            "macs": (Mac(machine.boot_mac),),
            "bmc": BmcAddress(machine.bmc.address, "root", BMC_PASSWORD, BMC_PORT, str(self.ca.file)),
            "root_disk": Serial(machine.drives[0].serial),
            "authorized_key": PUBLIC,
            "user": "ops",
            "host_key_private": PRIVATE,
            "host_key_public": PUBLIC,
        }
        return InstallTarget(**{**fields, **changes})

    def settings(self, **changes: Any) -> MaasSettings:
        fields: dict[str, Any] = {
            "url": f"https://{self.world.layout.maas}:{MAAS_PORT}/MAAS",
            "api_key": API_KEY,
            "series": "jammy",
            "ca_file": str(self.ca.file),
        }
        return MaasSettings(**{**fields, **changes})

    def installer(self, clock: UtcClock | None = None, **changes: Any) -> MaasInstaller:
        return MaasInstaller(self.settings(**changes), clock or UtcClock())


def until(installer: MaasInstaller, target: InstallTarget, *states: InstallState) -> Any:
    """Poll as the install step does, until the machine is in one of `states`; a deadline ends it."""
    deadline = Deadline.after(60)
    while True:
        status = installer.observe([target], deadline)[target.name].value
        if status.state in states:
            return status
        assert status.state is not InstallState.FAILED, status
        deadline.sleep(0.02, f"waiting for {states}, now {status}")
