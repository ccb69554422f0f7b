"""The lab's world over machines that have a firmware of their own: a BMC's orders reach them, their own deeds the BMC."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import replace
from ipaddress import IPv4Network
from typing import Any

from clusterctl_lab.boot import BootTarget, HttpBoot, drives_first
from clusterctl_lab.healthy import build
from clusterctl_lab.layout import Layout
from clusterctl_lab.machine import Machine
from clusterctl_lab.metal import as_metal
from clusterctl_lab.requests import boot_stage
from clusterctl_lab.settings import SHORT
from clusterctl_lab.state import MachineState
from clusterctl_lab.world import World

LAYOUT = Layout(IPv4Network("10.77.0.0/16"))
NAME = "node001"
DISK, NIC = "BOSS0001", "02:1a:ee:00:00:01"


class Recorder:
    """A `Metal` that records its calls."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, ...]] = []

    def installed(self, machine: Machine) -> bool:
        return False

    async def power_on(self, machine: Machine, devices: Sequence[str], http: HttpBoot | None) -> None:
        self.calls.append(("on", *((http.uri, *http.authorities) if http else ()), *devices))

    async def power_off(self, machine: Machine) -> None:
        self.calls.append(("off",))

    async def press_power_button(self, machine: Machine) -> None:
        self.calls.append(("button",))


class Rehearsal:
    """A world of one machine."""

    def __init__(self, machine: Machine) -> None:
        self.metal = Recorder()
        self.world = World(LAYOUT, {NAME: machine}, SHORT)
        self.world.metal = self.metal
        self.state.boot_order = drives_first(machine)

    @property
    def state(self) -> MachineState:
        return self.world.states[NAME]

    @property
    def stage(self) -> str:
        return boot_stage(self.world.machines[NAME], self.state)

    async def on(self) -> None:
        await self.world.set_power(NAME, on=True)
        await self.booted()

    async def booted(self) -> None:
        assert self.state.boot_task is not None
        await self.state.boot_task


def rehearse(story: Callable[[Rehearsal], Coroutine[Any, Any, None]], **changes: Any) -> None:
    async def run() -> None:
        await story(Rehearsal(replace(as_metal(build(1, LAYOUT, "x")), **changes)))

    asyncio.run(run())


def test_an_override_for_one_boot_is_used_up_by_a_reset_from_within() -> None:
    """PXE once: the installer's own reboot leads to the disk, though no client touched the BMC; power never went off."""

    async def story(lab: Rehearsal) -> None:
        lab.state.boot_target, lab.state.boot_once = BootTarget.PXE, True
        await lab.on()
        assert lab.metal.calls == [("on", NIC, DISK)]
        await lab.world.rebooted(NAME)
        await lab.booted()
        assert lab.metal.calls[-1] == ("on", DISK, NIC)
        assert lab.state.power
        assert lab.state.boots == 2

    rehearse(story)


def test_a_boot_over_https_has_the_uri_and_the_authorities_once() -> None:
    """What the BMC was given; the installer's own reboot leads to the disk."""

    async def story(lab: Rehearsal) -> None:
        lab.state.boot_target, lab.state.boot_once = BootTarget.UEFI_HTTP, True
        lab.state.boot_uri, lab.state.boot_authorities = "https://192.0.2.1/x.efi", ("PEM",)
        await lab.on()
        await lab.world.rebooted(NAME)
        await lab.booted()
        assert lab.metal.calls[0] == ("on", "https://192.0.2.1/x.efi", "PEM", NIC, DISK)
        assert lab.metal.calls[-1] == ("on", DISK, NIC)

    rehearse(story)


def test_a_continuous_override_stays() -> None:
    """PXE continuously: each boot begins with the network."""

    async def story(lab: Rehearsal) -> None:
        lab.state.boot_target = BootTarget.PXE
        await lab.on()
        await lab.world.rebooted(NAME)
        await lab.booted()
        assert [call for call in lab.metal.calls if call[0] == "on"] == [("on", NIC, DISK)] * 2

    rehearse(story)


def test_the_firmware_reports_its_progress() -> None:
    """POST until it looks for something to boot; an OS only once a drive's loader runs."""

    async def story(lab: Rehearsal) -> None:
        await lab.on()
        assert (lab.stage, lab.state.booted_from) == ("starting", BootTarget.NONE)
        lab.world.left_post(NAME)
        lab.world.started(NAME, BootTarget.PXE)
        assert (lab.stage, lab.state.booted_from) == ("no OS", BootTarget.PXE)
        lab.world.started(NAME, BootTarget.HDD)
        assert (lab.stage, lab.state.booted_from) == ("running", BootTarget.HDD)

    rehearse(story)


def test_a_listener_for_running_hosts_is_called() -> None:
    """The fabric's links come up when a drive's loader runs, and go with it; a listener for hosts that the lab boots
    (MAAS calls them Deployed) is not called.
    """
    changes: list[tuple[str, bool]] = []

    async def note(machine: Machine, on: bool) -> None:
        changes.append((machine.name, on))

    async def never(machine: Machine, on: bool) -> None:
        raise AssertionError(machine.name, on)

    async def story(lab: Rehearsal) -> None:
        lab.world.on_run(note)
        lab.world.on_power(never)
        await lab.on()
        lab.world.started(NAME, BootTarget.PXE)
        lab.world.started(NAME, BootTarget.HDD)
        await asyncio.sleep(0)
        assert changes == [(NAME, True)]
        await lab.world.rebooted(NAME)
        assert changes == [(NAME, True), (NAME, False)]
        await lab.world.set_power(NAME, on=False)
        assert len(changes) == 2

    rehearse(story)


def test_a_machine_that_hangs_in_post_never_starts() -> None:
    """`never-boots`: power is on, and no virtual machine runs."""

    async def story(lab: Rehearsal) -> None:
        await lab.on()
        assert lab.state.power
        assert lab.stage == "hangs in POST"
        assert not lab.metal.calls

    rehearse(story, boots=False)


def test_power_off_from_within_shows_at_the_bmc() -> None:
    """A guest that switched itself off has no power, and stays so."""

    async def story(lab: Rehearsal) -> None:
        await lab.on()
        lab.world.started(NAME, BootTarget.HDD)
        await lab.world.switched_off(NAME)
        assert (lab.state.power, lab.state.running, lab.stage) == (False, False, "off")

    rehearse(story)


def test_a_reset_while_power_falls_starts_nothing() -> None:
    """The BMC takes the power, and the guest resets itself before it is gone: the machine stays off."""

    async def story(lab: Rehearsal) -> None:
        await lab.on()
        off = asyncio.create_task(lab.world.set_power(NAME, on=False))
        await asyncio.sleep(0)
        await lab.world.rebooted(NAME)
        await off
        assert lab.state.boot_task is not None
        await asyncio.wait([lab.state.boot_task])
        assert not lab.state.power
        assert [call for call in lab.metal.calls if call[0] == "on"] == [("on", DISK, NIC)]

    rehearse(story)


def test_a_graceful_restart_waits_for_the_os() -> None:
    """The OS is asked, and power comes back only after it has switched itself off; a shutdown leaves it off."""

    async def story(lab: Rehearsal) -> None:
        await lab.on()
        lab.world.started(NAME, BootTarget.HDD)
        await lab.world.shut_down(NAME, restart=True)
        assert lab.metal.calls[-1] == ("button",)
        assert lab.state.power
        await lab.world.switched_off(NAME)
        await lab.booted()
        assert lab.state.power
        assert lab.state.boots == 2
        await lab.world.shut_down(NAME)
        await lab.world.switched_off(NAME)
        assert not lab.state.power

    rehearse(story)


def test_a_disc_boots_nothing() -> None:
    """What the lab has no machine for ends there: no virtual machine is started with something else instead."""

    async def story(lab: Rehearsal) -> None:
        lab.state.boot_target, lab.state.boot_once = BootTarget.BIOS_SETUP, True
        await lab.on()
        assert lab.state.booted_from is BootTarget.BIOS_SETUP
        assert not lab.metal.calls

    rehearse(story)
