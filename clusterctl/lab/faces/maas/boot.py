"""What a machine does when it boots from the network: it asks MAAS, and MAAS's state of it decides."""

from __future__ import annotations

import asyncio
import logging
import uuid

from clusterctl.fleet.errors import EdgeError
from clusterctl.lab.disk_names import kernel_names
from clusterctl.lab.faces.maas.bmc import PowerError
from clusterctl.lab.faces.maas.lifecycle import FAILED, NO_BMC, PASSED, Lifecycle
from clusterctl.lab.faces.maas.model import Disk, Hardware, Node
from clusterctl.lab.faces.maas.status import Status
from clusterctl.lab.faces.maas.storage import lay_flat
from clusterctl.lab.machine import Drive, Machine
from clusterctl.lab.partners import NetbootAnswer

log = logging.getLogger(__name__)

INSTALLATION_FAILED = "Installation failed (refer to the installation log for more information)."
ERASING_FAILED = "Failed to erase disks."
INSTALLED_OR_REBOOTING = frozenset({Status.DEPLOYING, Status.DEPLOYED})
IDENTITIES = uuid.uuid5(uuid.NAMESPACE_DNS, "lab.invalid")


class Boot:
    """Serves network boots and carries out what the booted machine then does by itself."""

    def __init__(self, lifecycle: Lifecycle) -> None:
        self._lifecycle = lifecycle
        self._world = lifecycle.world
        self._store = lifecycle.store

    async def netboot(self, machine: Machine) -> NetbootAnswer:
        """Meets `Provisioner`. A machine that MAAS knows but has no use for is told to switch itself off."""
        node = self._store.by_mac(machine.boot_mac)
        if node is None or not self._lifecycle.faults.rack_connected:
            return NetbootAnswer.NOTHING
        if not node.netboot and node.status in INSTALLED_OR_REBOOTING:
            return NetbootAnswer.LOCAL_DISK
        jobs = {
            Status.COMMISSIONING: self._commission,
            Status.TESTING: self._test,
            Status.DEPLOYING: self._deploy,
            Status.DISK_ERASING: self._erase,
            Status.ENTERING_RESCUE_MODE: self._rescue,
            Status.RESCUE_MODE: self._rescue,
        }
        job = jobs.get(node.status, self._switch_itself_off)
        delays = self._world.delays
        if node.status in jobs:
            self._lifecycle.watch(node, delays.netboot_timeout + 2 * delays.commission + delays.write_os)
        if node.hostname not in self._lifecycle.faults.stuck:
            self._lifecycle.background.spawn(node.system_id, job(node, machine))
        return NetbootAnswer.EPHEMERAL

    async def power_changed(self, machine: Machine, on: bool) -> None:
        """The installed OS runs: it has fetched its user-data, which is what `Deployed` means. An OS that MAAS did not
        write never asks for any: MAAS waits for the other one in vain.
        """
        if not on or machine.foreign_disk is not None:
            return
        node = self._store.by_mac(machine.boot_mac)
        if node is not None and node.status is Status.DEPLOYING and not node.netboot:
            self._lifecycle.background.unwatch(node.system_id)
            node.status = Status.DEPLOYED
            self._store.log(node, "Deployed")

    async def _commission(self, node: Node, machine: Machine) -> None:
        await self._work(self._world.delays.commission)
        if node.hostname in self._lifecycle.faults.failing_scripts:
            node.commissioning = FAILED
            self._scripts_failed(node, Status.FAILED_COMMISSIONING)
            return
        self._take_inventory(node, self._world.machines[machine.name])
        node.commissioning = PASSED
        if node.runs_tests:
            node.status = Status.TESTING
            await self._test(node, machine)
            return
        await self._ready(node)

    async def _test(self, node: Node, machine: Machine) -> None:
        log.debug("%s tests itself", machine.name)
        await self._work(self._world.delays.commission)
        if node.hostname in self._lifecycle.faults.failing_scripts:
            node.testing = FAILED
            self._scripts_failed(node, Status.FAILED_TESTING)
            return
        node.testing = PASSED
        await self._ready(node)

    async def _deploy(self, node: Node, machine: Machine) -> None:
        await self._work(self._world.delays.write_os)
        target = node.root_disk
        current = self._world.machines[machine.name]
        present = target is not None and any(drive.serial == target.serial for drive in current.drives)
        if target is None or self._world.hosts is None or not present or node.ephemeral:
            self._lifecycle.fail(node, INSTALLATION_FAILED, "mark_failed")
            return
        try:
            await self._world.install(machine.name, target.serial, node.user_data)
        except (OSError, ValueError):
            log.exception("the OS of %s could not be written", machine.name)
            self._lifecycle.fail(node, INSTALLATION_FAILED, "mark_failed")
            return
        self._store.log(node, "Image Deployed", f"deployed {node.osystem}/{node.series}/{node.architecture}")
        node.netboot = False
        self._store.log(node, "Rebooting")
        self._lifecycle.watch(node, self._world.delays.netboot_timeout)
        try:
            await self._lifecycle.power.restart(node.power_parameters)
        except PowerError as error:
            self._lifecycle.fail(node, f"{NO_BMC}{error}", "mark_failed")

    async def _erase(self, node: Node, machine: Machine) -> None:
        await self._work(self._world.delays.commission)
        try:
            await self._world.erase(machine.name)
        except EdgeError as error:
            log.info("%s: %s", machine.name, error)
            self._lifecycle.fail(node, ERASING_FAILED, "mark_failed")
            return
        self._lifecycle.release(node)

    async def _rescue(self, node: Node, machine: Machine) -> None:
        log.debug("%s is in rescue mode", machine.name)
        self._lifecycle.background.unwatch(node.system_id)
        node.status = Status.RESCUE_MODE
        self._store.log(node, "Rescue mode")

    async def _switch_itself_off(self, node: Node, machine: Machine) -> None:
        log.debug("%s booted from the network without need", machine.name)
        await self._off(node)

    async def _ready(self, node: Node) -> None:
        await self._off(node)
        self._lifecycle.background.unwatch(node.system_id)
        node.status, node.owner = Status.READY, ""
        self._store.log(node, "Ready")

    async def _off(self, node: Node) -> None:
        try:
            await self._lifecycle.power_goes_off(node)
        except PowerError as error:
            log.warning("%s stays on: %s", node.hostname, error)

    def _scripts_failed(self, node: Node, status: Status) -> None:
        """The machine itself reports it; it stays on, so that a person can look."""
        self._lifecycle.background.unwatch(node.system_id)
        node.status = status
        self._store.log(node, status.label)

    @staticmethod
    async def _work(seconds: float) -> None:
        """Simulated time that physical work takes."""
        await asyncio.sleep(seconds)

    def _take_inventory(self, node: Node, machine: Machine) -> None:
        """What commissioning uploads: hardware, drives, the boot port's address; then MAAS's default layout."""
        node.hardware = Hardware(
            vendor=machine.manufacturer,
            product=machine.model,
            serial=machine.serial,
            bios_version=machine.bios_version,
            uuid=str(uuid.uuid5(IDENTITIES, machine.serial)),
            cpu_count=machine.cores,
            memory_mib=machine.memory_gib * 1024,
        )
        known = {disk.serial: disk for disk in node.disks}
        names = kernel_names(machine)
        node.disks = [
            known.get(drive.serial) or self._disk(drive, name)
            for drive, name in zip(machine.drives, names, strict=True)
        ]
        for interface in node.interfaces:
            interface.address = machine.address if interface.mac == machine.boot_mac else ""
        if node.boot_disk is not None:
            lay_flat(self._store, node, node.boot_disk, None)

    def _disk(self, drive: Drive, name: str) -> Disk:
        nvme = name.startswith("nvme")
        return Disk(self._store.next_id("disk"), name, drive.serial, drive.model, drive.size_bytes, nvme)
