"""What MAAS makes of a machine's report while it commissions or tests it: an inventory, and a machine that is off."""

from __future__ import annotations

import asyncio
import logging

from clusterctl_lab.emulators.maas import machine_work
from clusterctl_lab.emulators.maas.bmc import PowerError
from clusterctl_lab.emulators.maas.lifecycle import PASSED, Lifecycle
from clusterctl_lab.emulators.maas.metal.report import FoundDisk, MachineReport
from clusterctl_lab.emulators.maas.model import Disk, Hardware, Node, Store
from clusterctl_lab.emulators.maas.status import Status
from clusterctl_lab.machine import Machine
from clusterctl_lab.world import World

log = logging.getLogger(__name__)

POLL_SECONDS = 1.0
OFF_POLLS = 120
"""A machine that was ordered to switch itself off is queried this many times; then it is switched off."""


async def commission(lifecycle: Lifecycle, node: Node, report: MachineReport) -> None:
    """Move the machine to Ready, through Testing where that was requested. The only test: the beginning of every disk
    is readable.
    """
    failing = node.hostname in lifecycle.faults.failing_scripts
    if node.status is Status.COMMISSIONING:
        if failing:
            machine_work.scripts_failed(lifecycle, node, Status.FAILED_COMMISSIONING)
            return
        _record(lifecycle, node, report)
        node.commissioning = PASSED
        if node.runs_tests:
            node.status = Status.TESTING
    if node.status is Status.TESTING:
        if failing or not all(disk.readable for disk in report.disks):
            machine_work.scripts_failed(lifecycle, node, Status.FAILED_TESTING)
            return
        node.testing = PASSED
    await _goes_off(lifecycle, node)
    await machine_work.ready(lifecycle, node)


def machine_of(world: World, node: Node) -> Machine:
    """The machine that has the node's card."""
    return next(machine for machine in world.machines.values() if machine.boot_mac in node.macs)


async def _goes_off(lifecycle: Lifecycle, node: Node) -> None:
    """Wait until the machine has switched itself off."""
    try:
        for _ in range(OFF_POLLS):
            if await lifecycle.power.query(node.power_parameters) == "off":
                return
            await asyncio.sleep(POLL_SECONDS)
    except PowerError as error:
        log.warning("%s: %s", node.hostname, error)


def _record(lifecycle: Lifecycle, node: Node, report: MachineReport) -> None:
    machine = machine_of(lifecycle.world, node)
    hardware = Hardware(
        vendor=report.manufacturer,
        product=report.product,
        serial=report.serial,
        bios_version=report.bios,
        uuid=report.uuid,
        cpu_count=report.cpus,
        memory_mib=report.memory_mib,
    )
    known = {disk.serial: disk for disk in node.disks}
    disks = [known.get(found.serial) or _disk(lifecycle.store, found) for found in report.disks]
    machine_work.record(lifecycle, node, hardware, disks, {machine.boot_mac: machine.address})


def _disk(store: Store, found: FoundDisk) -> Disk:
    nvme = found.name.startswith("nvme")
    return Disk(store.next_id("disk"), found.name, found.serial, found.model, found.size, nvme)
