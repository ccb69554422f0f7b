"""clusterctl's client, the lab's MAAS, the lab's BMCs, and machines with a firmware of their own that need no QEMU: from
enrolment to Deployed, each boot a boot.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from clusterctl.ports import Deadline, InstallState
from clusterctl_lab.boot import BootTarget, HttpBoot, drives_first
from clusterctl_lab.emulators.maas.metal.boot_service import BootService
from clusterctl_lab.machine import Machine
from lab.tests.emulators.maas.metal_boot_kit import BASE, boot_folder
from tests.edges.maas.kit import PUBLIC, Lab, until


@dataclass
class Firmware:
    """Meets `Metal`. What boots from the network does as the deployer does; what boots from a disk reports it to MAAS, unless
    it is `dead`. `booted`: machine and device of each boot.
    """

    lab: Lab
    boot_service: BootService
    dead: bool = False
    booted: list[tuple[str, str]] = field(default_factory=list)
    tokens: dict[str, str] = field(default_factory=dict)
    tasks: set[asyncio.Task[None]] = field(default_factory=set)

    def installed(self, machine: Machine) -> bool:
        return machine.name in self.tokens

    async def power_on(self, machine: Machine, devices: Sequence[str], http: HttpBoot | None) -> None:
        task = asyncio.create_task(self._boot(machine, devices[0]))
        self.tasks.add(task)
        task.add_done_callback(self.tasks.discard)

    async def power_off(self, machine: Machine) -> None:
        """Nothing of it runs."""

    async def press_power_button(self, machine: Machine) -> None:
        """No server listens."""

    async def _boot(self, machine: Machine, device: str) -> None:
        world = self.lab.world
        self.booted.append((machine.name, device))
        if device != machine.boot_mac:
            world.started(machine.name, BootTarget.HDD)
            if not self.dead:
                self.boot_service.handle(self.tokens[machine.name], "booted", "")
            return
        token = self.boot_service.script(device).partition("clusterctl.token=")[2].split()[0]
        world.started(machine.name, BootTarget.PXE)
        drives = "".join(
            f"disk=/dev/nvme{number}n1\t{drive.serial}\t\t{drive.size_bytes}\tQEMU NVMe Ctrl\treadable\n"
            for number, drive in enumerate(machine.drives)
        )
        report = f"serial={machine.serial}\ncpus=1\nmemory=1000000\nmac={machine.boot_mac}\n{drives}"
        if self.boot_service.handle(token, "report", report).status == 409:
            await world.switched_off(machine.name)
            return
        assert self.boot_service.handle(token, "host-key", PUBLIC).status == 200
        assert self.boot_service.handle(token, "done", "").status == 200
        self.tokens[machine.name] = token
        await world.rebooted(machine.name)


@pytest.fixture
def firmware(tmp_path: Path) -> Iterator[Firmware]:
    lab = Lab(tmp_path, network="127.93.0.0/16")
    boot_service = BootService(lab.maas.service.lifecycle, boot_folder(tmp_path / "boot"), BASE)
    found = Firmware(lab, boot_service)
    lab.world.metal = found
    for name, machine in lab.world.machines.items():
        lab.world.states[name].boot_order = drives_first(machine)
    yield found
    lab.close()


def test_from_enrolment_to_a_machine_that_has_booted(firmware: Firmware) -> None:
    """Three boots: commissioned from the network, written from the network, started from its disk."""
    target = firmware.lab.target()
    machine = firmware.lab.world.machines["node001"]
    installer = firmware.lab.installer()
    installer.prepare(target, Deadline.after(60))
    until(installer, target, InstallState.READY)
    installer.start(target, Deadline.after(60))
    status = until(installer, target, InstallState.INSTALLED)
    assert status.addresses == (machine.address,)
    assert firmware.booted == [
        ("node001", machine.boot_mac),
        ("node001", machine.boot_mac),
        ("node001", machine.drives[0].serial),
    ]
    assert firmware.lab.world.states["node001"].running
    assert firmware.lab.world.states["node001"].installs == 1


def test_what_does_not_boot_is_never_deployed(firmware: Firmware) -> None:
    """Its OS is on the disk and the machine has started from it: not Deployed, and failed when MAAS's time is over."""
    firmware.dead = True
    target, installer = firmware.lab.target(), firmware.lab.installer()
    installer.prepare(target, Deadline.after(60))
    until(installer, target, InstallState.READY)
    firmware.lab.lose_patience(5.0)
    installer.start(target, Deadline.after(60))
    deadline = Deadline.after(120)
    seen = set()
    while InstallState.FAILED not in seen:
        seen.add(installer.observe([target], deadline)[target.name].value.state)
        deadline.sleep(0.1, f"waiting for MAAS to lose patience, saw {seen}")
    assert InstallState.INSTALLED not in seen
