"""The network boot of a machine: the machine asks MAAS, and its state in MAAS decides."""

from __future__ import annotations

import asyncio
import logging
import uuid

from clusterctl.fleet.errors import EdgeError
from clusterctl_lab.disk_names import kernel_names
from clusterctl_lab.emulators.maas import machine_work
from clusterctl_lab.emulators.maas.bmc import PowerError
from clusterctl_lab.emulators.maas.lifecycle import NO_BMC, PASSED, Lifecycle
from clusterctl_lab.emulators.maas.machine_work import ERASING_FAILED, INSTALLATION_FAILED
from clusterctl_lab.emulators.maas.model import Disk, Hardware, Node
from clusterctl_lab.emulators.maas.status import Status
from clusterctl_lab.machine import Drive, Machine
from clusterctl_lab.partners import NetbootAnswer

log = logging.getLogger(__name__)

INSTALLED_OR_REBOOTING = frozenset({Status.DEPLOYING, Status.DEPLOYED})
IDENTITIES = uuid.uuid5(uuid.NAMESPACE_DNS, "lab.invalid")


class Boot:
    """Serves network boots and runs the steps that the booted machine then performs by itself."""

    def __init__(self, lifecycle: Lifecycle) -> None:
        self._lifecycle = lifecycle
        self._world = lifecycle.world
        self._store = lifecycle.store

    async def netboot(self, machine: Machine) -> NetbootAnswer:
        """Implement `Provisioner`. A machine that MAAS knows but does not need switches itself off."""
        node = self._store.by_mac(machine.boot_mac)
        if node is None or not self._lifecycle.faults.rack_reaches:
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
        """Record that the installed OS runs: it has fetched its user-data, which is the meaning of `Deployed`. An OS
        that MAAS did not write never fetches it, so MAAS waits without success.
        """
        if not on or machine.foreign_disk is not None:
            return
        node = self._store.by_mac(machine.boot_mac)
        if node is not None:
            machine_work.deployed(self._lifecycle, node)

    async def _commission(self, node: Node, machine: Machine) -> None:
        await self._work(self._world.delays.commission)
        if self._lifecycle.scripts_fail(node):
            machine_work.scripts_failed(self._lifecycle, node, Status.FAILED_COMMISSIONING)
            return
        self._take_inventory(node, self._world.machines[machine.name])
        node.commissioning = PASSED
        if node.runs_tests:
            node.status = Status.TESTING
            await self._test(node, machine)
            return
        await machine_work.ready(self._lifecycle, node)

    async def _test(self, node: Node, machine: Machine) -> None:
        log.debug("%s tests itself", machine.name)
        await self._work(self._world.delays.commission)
        if self._lifecycle.scripts_fail(node):
            machine_work.scripts_failed(self._lifecycle, node, Status.FAILED_TESTING)
            return
        node.testing = PASSED
        await machine_work.ready(self._lifecycle, node)

    async def _deploy(self, node: Node, machine: Machine) -> None:
        await self._work(self._world.delays.write_os)
        node.install_log = self._lifecycle.faults.install_logs.get(node.hostname, "")
        if node.install_log:
            self._lifecycle.fail(node, INSTALLATION_FAILED, "mark_failed")
            return
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
        machine_work.image_deployed(self._lifecycle, node)
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
        await machine_work.switch_off(self._lifecycle, node)

    @staticmethod
    async def _work(seconds: float) -> None:
        """Return the simulated time of physical work."""
        await asyncio.sleep(seconds)

    def _take_inventory(self, node: Node, machine: Machine) -> None:
        """Record the inventory that commissioning would read from the machine."""
        hardware = Hardware(
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
        disks = [
            known.get(drive.serial) or self._disk(drive, name)
            for drive, name in zip(machine.drives, names, strict=True)
        ]
        machine_work.record(self._lifecycle, node, hardware, disks, {machine.boot_mac: machine.address})

    def _disk(self, drive: Drive, name: str) -> Disk:
        nvme = name.startswith("nvme")
        return Disk(self._store.next_id("disk"), name, drive.serial, drive.model, drive.size_bytes, nvme)
