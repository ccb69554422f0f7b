"""One running lab: its world and all emulators, started in order and closed in reverse order."""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import Callable, Iterable, Mapping
from contextlib import AsyncExitStack
from functools import partial
from pathlib import Path
from typing import Protocol, Self

from clusterctl_lab import faults
from clusterctl_lab.boot import drives_first
from clusterctl_lab.certificates import LabCa
from clusterctl_lab.emulators.apt import ensure_repository, serve_apt
from clusterctl_lab.emulators.fabric import LabFabric, trunks
from clusterctl_lab.emulators.maas import LabMaas, serve_maas
from clusterctl_lab.emulators.maas.metal import Netting, read_boot_files, serve_netboot
from clusterctl_lab.emulators.redfish import Serving, serve_bmcs
from clusterctl_lab.emulators.redfish.download import download
from clusterctl_lab.fault_injection import inject_all
from clusterctl_lab.healthy import build, with_roce
from clusterctl_lab.host_files import in_share, on_disk, skeleton, write_lower
from clusterctl_lab.hosts import ExitReason, HostSettings, NamespaceHosts
from clusterctl_lab.hosts.names import LabNames
from clusterctl_lab.hosts.pods import open_socket
from clusterctl_lab.image import ensure_image, host_release
from clusterctl_lab.installed import install_all
from clusterctl_lab.keys import make_keys
from clusterctl_lab.layout import Pod
from clusterctl_lab.machine import BmcCondition, Machine
from clusterctl_lab.metal import BOOT_FOLDER, MetalSettings, QemuMetal, as_metal, inject_metal
from clusterctl_lab.metal.packages import metal_packages
from clusterctl_lab.settings import LabSettings
from clusterctl_lab.site_directory import SiteDirectory
from clusterctl_lab.site_files import SiteFacts, host_variables, metal_variables, render
from clusterctl_lab.sockets import OpenSocket
from clusterctl_lab.variation import healthy
from clusterctl_lab.world import World

log = logging.getLogger(__name__)

MAAS_PORT = 5443
Progress = Callable[[str], None]


class Platform(Protocol):
    """The platform of the machines: namespaces, or virtual machines."""

    def installed(self, machine: Machine) -> bool: ...

    async def add_addresses(self, addresses: Iterable[str]) -> None:
        """Add addresses of the lab's services and BMCs, reachable from the machines."""
        ...

    async def remove_addresses(self, addresses: Iterable[str]) -> None:
        """Remove addresses: nothing answers there any more, not even to ARP."""
        ...


class RunningLab:
    """A lab by its `settings`; `progress` gets messages about slow work. Use as `async with RunningLab(…) as lab`."""

    def __init__(self, settings: LabSettings, progress: Progress) -> None:
        self.settings = settings
        self._progress = progress
        self._layout = settings.layout
        self._keys = make_keys(f"clusterctl-lab-{settings.name}")
        self._healthy = _machines(settings, self._keys.bmc_password)
        machines = _with_faults(self._healthy, settings)
        self.world = World(self._layout, machines, settings.delays, healthy=self._healthy)
        self._opened = open_socket(LabNames(settings.name), self._layout)
        self._stack = AsyncExitStack()
        self._platform: Platform

    async def __aenter__(self) -> Self:
        try:
            await self._start()
        except BaseException:
            await self._stack.aclose()
            raise
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._stack.aclose()

    async def break_machine(self, fault: str, target: str) -> Machine:
        """Inject a fault, or quirks of a BMC or of MAAS; every emulator shows it when this returns."""
        inject = inject_metal if self.settings.virtual else inject_all
        broken = inject(self.world.machines, fault, target)
        for machine in broken:
            await self.world.replace(machine)
        return broken[0]

    async def heal(self, name: str) -> tuple[str, ...]:
        """Remove all faults of the machine, of all for an empty `name`; return the names of the changed machines.

        Permanent changes (firmware, settings, the BMC's password) stay. The partner of a fault is healed too, so that
        no machine keeps another one's cable.
        """
        wanted = [faults.machine_named(self.world.machines, name)] if name else list(self.world.machines.values())
        broken = [machine for machine in wanted if machine.faults or machine.bmc.quirks or machine.maas_quirks]
        with_it = [other.node for machine in broken for other in faults.partners(machine, machine.faults)]
        names = tuple(dict.fromkeys([*(machine.name for machine in broken), *with_it]))
        for each in names:
            await self.world.replace(self.world.healthy[each])
        return names

    def installed(self, machine: Machine) -> bool:
        """Return whether an OS is on one of its drives."""
        return self._platform.installed(machine)

    async def _start(self) -> None:
        ca = LabCa(self.settings.paths.tls, self.settings.name)
        if self.settings.virtual:
            await self._start_virtual(ca)
        else:
            await self._start_namespaces(ca)

    async def _start_virtual(self, ca: LabCa) -> None:
        """Start virtual machines, which clusterctl's PXE installs, or the lab's MAAS."""
        packages = await asyncio.to_thread(metal_packages, self.settings.os_image, self._progress)
        metal = QemuMetal(
            MetalSettings(
                self.settings.name,
                self._layout,
                self.settings.paths.state,
                self.settings.rails,
                on_disk(packages, self._layout),
                in_share,
            ),
            self.world,
        )
        await metal.start(self.world.machines.values())
        self._stack.push_async_callback(metal.close)
        self._stack.push_async_callback(self._stop_boots)
        self.world.metal = self._platform = metal
        self.world.on_change(metal.refresh)
        for name, machine in self.world.machines.items():
            self.world.states[name].boot_order = drives_first(machine)
        await self._start_fabric()
        await self._start_bmcs(ca)
        await self._start_apt(packages)
        if self.settings.has_maas:
            await self._start_rack(await self._start_maas(ca))
        await self._write_site(ca, metal_variables(packages, self._layout.apt), "")

    async def _start_namespaces(self, ca: LabCa) -> None:
        image = await asyncio.to_thread(ensure_image, self._progress)
        packages = await asyncio.to_thread(ensure_repository, image, self._progress)
        await self._start_hosts(image, packages)
        await self._start_fabric()
        await self._start_bmcs(ca)
        await self._start_apt(packages)
        await self._start_maas(ca)
        known_hosts = ""
        if self.settings.installed:
            self._progress(f"installing and booting {len(self.world.machines)} hosts")
            known_hosts = await install_all(self.world, self._keys.ssh_public, self._opened)
        await self._write_site(ca, host_variables(packages, self._layout.apt), known_hosts)

    async def _start_hosts(self, image: Path, packages: Path) -> None:
        settings = HostSettings(
            lab=self.settings.name,
            layout=self._layout,
            image=image,
            state_dir=self.settings.paths.state,
            rails=self.settings.rails,
            skeleton=skeleton(packages, self._layout.apt),
            extra_lower=write_lower(self.settings.paths.state / "tools"),
            neighbours={machine.name: machine.address for machine in self._healthy.values()},
        )
        hosts = NamespaceHosts(settings, self._host_ended)
        await hosts.start()
        self._stack.push_async_callback(hosts.close)
        self._stack.push_async_callback(self._stop_boots)
        self.world.hosts = self._platform = hosts
        self.world.on_change(hosts.refresh)

    async def _start_fabric(self) -> None:
        fabric = LabFabric()
        await fabric.start(self.world, self.settings.paths.state, self._roots)
        self._stack.push_async_callback(fabric.close)

    def _roots(self) -> list[Path]:
        """Return the file systems of the namespace hosts that run."""
        hosts = self.world.hosts
        if not isinstance(hosts, NamespaceHosts):
            return []
        pids = [hosts.pid(name) for name in self.world.machines]
        return [Path(f"/proc/{pid}/root") for pid in pids if pid is not None]

    async def _start_bmcs(self, ca: LabCa) -> None:
        bmcs = [machine.bmc for machine in self.world.machines.values()]
        await self._platform.add_addresses([bmc.address for bmc in bmcs if bmc.condition is not BmcCondition.DEAD])
        self.world.on_change(self._show_bmc)
        fetch = partial(download, opened=self._opened)
        serving = Serving(expired=ca.expired_certificate_for, fetch=fetch, opened=self._opened)
        redfish = await serve_bmcs(self.world, ca.certificate_for, serving=serving)
        self._stack.push_async_callback(redfish.close)

    async def _start_apt(self, packages: Path) -> None:
        """Serve the packages; in a lab that is split at the same address in each pod."""
        address, pods = self._layout.apt, self._layout.pods
        if not pods:
            await self._platform.add_addresses([address])
        places: list[OpenSocket] = [partial(self._opened_in, pod) for pod in pods]
        for opened in places or [self._opened]:
            apt = await serve_apt(packages, address, opened=opened)
            self._stack.push_async_callback(apt.close)

    def _opened_in(self, pod: Pod, _address: str) -> socket.socket:
        """Open a socket in the pod, for an address that each pod has."""
        return self._opened(pod.gateways[0])

    async def _start_maas(self, ca: LabCa) -> LabMaas:
        await self._platform.add_addresses([self._layout.maas])
        maas = await serve_maas(
            *(self.world, ca.certificate_for, self._keys.maas_api_key),
            port=MAAS_PORT,
            bmc_ca=ca.ca_file,
            opened=self._opened,
        )
        self._stack.push_async_callback(maas.close)
        return maas

    async def _start_rack(self, maas: LabMaas) -> None:
        """Start the services from which virtual machines boot over the network."""
        names = LabNames(self.settings.name)
        files = await asyncio.to_thread(read_boot_files, BOOT_FOLDER, self.settings.os_image)
        netting = Netting(names.lab, names.uplink, names.run_dir)
        rack = await serve_netboot(maas.service.lifecycle, files, netting)
        self._stack.push_async_callback(rack.close)

    async def _show_bmc(self, machine: Machine) -> None:
        """Remove the address of a dead BMC, add that of a working one. It runs before the BMC, which listens on it."""
        if machine.bmc.condition is BmcCondition.DEAD:
            await self._platform.remove_addresses([machine.bmc.address])
        else:
            await self._platform.add_addresses([machine.bmc.address])

    async def _write_site(self, ca: LabCa, variables: Mapping[str, object], known_hosts: str) -> None:
        facts = SiteFacts(
            lab=self.settings.name,
            layout=self._layout,
            machines=tuple(self._healthy.values()),
            trunks=trunks(self._healthy.values()),
            keys=self._keys,
            ca=ca.ca_file.read_bytes(),
            maas_port=MAAS_PORT,
            fabric_tools=self.settings.paths.state / "bin",
            variables=variables,
            known_hosts=known_hosts,
            virtual=self.settings.virtual,
            uplink="" if self.settings.has_maas else LabNames(self.settings.name).uplink,
            os_image=self.settings.os_image,
            release="" if self.settings.os_image else host_release().codename,
            roce=self.settings.roce,
        )
        folder = SiteDirectory(Path(self.settings.site), self.settings.name)
        for name in folder.write(render(facts)):
            self._progress(
                f"kept {folder.path / name}, which you changed; it may name an earlier lab's addresses or keys"
            )

    async def _host_ended(self, name: str, reason: ExitReason) -> None:
        """Follow a host that stopped by itself. After a kernel panic it restarts, as servers are configured."""
        if reason is ExitReason.POWEROFF:
            await self.world.set_power(name, on=False)
        else:
            await self.world.reboot(name)

    async def _stop_boots(self) -> None:
        tasks = [state.boot_task for state in self.world.states.values() if state.boot_task is not None]
        for task in tasks:
            task.cancel()
        for result in await asyncio.gather(*tasks, return_exceptions=True):
            if isinstance(result, Exception):
                log.error("a boot had failed: %s", result)


def _machines(settings: LabSettings, password: str) -> Mapping[str, Machine]:
    numbers = range(1, settings.hosts + 1)
    machines = (
        build(number, settings.layout, password, rails=settings.rails, vendor=settings.vendor(number))
        for number in numbers
    )
    delivered = map(as_metal, machines) if settings.virtual else machines
    delivered = map(with_roce, delivered) if settings.roce else delivered
    return {machine.name: healthy(machine, settings.seed) for machine in delivered}


def _with_faults(healthy: Mapping[str, Machine], settings: LabSettings) -> Mapping[str, Machine]:
    machines, inject = dict(healthy), inject_metal if settings.virtual else inject_all
    for text in settings.faults:
        fault, _, target = text.partition(":")
        machines |= {broken.name: broken for broken in inject(machines, fault, target)}
    return machines
