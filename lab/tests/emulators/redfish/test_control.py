"""Power and boot override through the emulated BMC, on a world with short delays; no network."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from dataclasses import replace
from typing import Any

import pytest

from clusterctl_lab.machine import Machine
from clusterctl_lab.partners import NetbootAnswer
from clusterctl_lab.world import World
from lab.tests.emulators.redfish.bmc_kit import RESET, SEL_ENTRIES, SYSTEM, ask, bmc_of, message_ids, world_of


class Netboots:
    """A provisioner that sends machines to their disks and counts who asked."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    async def netboot(self, machine: Machine) -> NetbootAnswer:
        self.asked.append(machine.name)
        return NetbootAnswer.LOCAL_DISK


class InstalledHosts:
    """Hosts that are installed and boot at once."""

    def installed(self, machine: Machine) -> bool:
        return True

    async def install(self, machine: Machine, disk_serial: str, user_data: bytes) -> None:
        raise NotImplementedError

    async def boot(self, machine: Machine) -> None:
        return

    async def halt(self, machine: Machine) -> None:
        return


async def settle() -> None:
    """Wait until everything that the BMC or the world has begun is over."""
    while others := asyncio.all_tasks() - {asyncio.current_task()}:
        await asyncio.wait(others)


def reset(bmc, reset_type: str):
    return ask(bmc, "POST", RESET, {"ResetType": reset_type})


def power(bmc) -> str:
    return ask(bmc, "GET", SYSTEM).body["PowerState"]


def play(scene: Coroutine[Any, Any, None]) -> None:
    """Run a scene, for at most 600 seconds."""

    async def bounded() -> None:
        async with asyncio.timeout(600):
            await scene

    asyncio.run(bounded())


def booting_world() -> tuple[World, Netboots]:
    world, netboots = world_of(), Netboots()
    world.provisioner, world.hosts = netboots, InstalledHosts()
    return world, netboots


def test_on_and_off() -> None:
    """A reset is answered with 204 at once; the power state follows."""

    async def scene() -> None:
        world, _ = booting_world()
        bmc = bmc_of(world)
        assert power(bmc) == "Off"
        assert reset(bmc, "On").status == 204
        await settle()
        assert (power(bmc), world.states["node001"].running) == ("On", True)
        assert reset(bmc, "ForceOff").status == 204
        assert power(bmc) == "On"
        await settle()
        assert (power(bmc), world.states["node001"].running) == ("Off", False)

    play(scene())


@pytest.mark.parametrize(
    "reset_type", ["ForceOff", "ForceRestart", "GracefulRestart", "GracefulShutdown", "PowerCycle"]
)
def test_conflict_when_already_off(reset_type) -> None:
    """What needs power is a 409 without it, and powers nothing on."""

    async def scene() -> None:
        bmc = bmc_of(world_of())
        answer = reset(bmc, reset_type)
        assert (answer.status, message_ids(answer)) == (409, ["PSU502"])
        await settle()
        assert power(bmc) == "Off"

    play(scene())


def test_conflict_when_already_on_even_right_after_force_off() -> None:
    """On is a 409 while the machine is on; a ForceOff that is still under way does not change that."""

    async def scene() -> None:
        world, _ = booting_world()
        bmc = bmc_of(world)
        reset(bmc, "On")
        await settle()
        assert message_ids(reset(bmc, "On")) == ["PSU501"]
        reset(bmc, "ForceOff")
        assert reset(bmc, "On").status == 409
        await settle()
        assert power(bmc) == "Off"

    play(scene())


@pytest.mark.parametrize("reset_type", ["ForceRestart", "GracefulRestart", "PowerCycle"])
def test_restart_boots_again(reset_type) -> None:
    """A restart ends with the machine on and booted once more."""

    async def scene() -> None:
        world, _ = booting_world()
        bmc = bmc_of(world)
        reset(bmc, "On")
        await settle()
        assert reset(bmc, reset_type).status == 204
        await settle()
        assert (power(bmc), world.states["node001"].boots) == ("On", 2)

    play(scene())


def test_graceful_requests_need_an_os() -> None:
    """Without a running OS a graceful shutdown is accepted and does nothing, as with any ACPI button press."""

    async def scene() -> None:
        bmc = bmc_of(world_of())
        reset(bmc, "On")
        await settle()
        assert reset(bmc, "GracefulShutdown").status == 204
        await settle()
        assert power(bmc) == "On"

    play(scene())


def test_power_button_toggles() -> None:
    """PushPowerButton turns on what is off and off what is on."""

    async def scene() -> None:
        world, _ = booting_world()
        bmc = bmc_of(world)
        states = []
        for _ in range(2):
            assert reset(bmc, "PushPowerButton").status == 204
            await settle()
            states.append(power(bmc))
        assert states == ["On", "Off"]

    play(scene())


def override(bmc, **boot: str):
    return ask(bmc, "PATCH", SYSTEM, {"Boot": {f"BootSourceOverride{key}": value for key, value in boot.items()}})


def shown_override(bmc) -> tuple[str, str]:
    boot = ask(bmc, "GET", SYSTEM).body["Boot"]
    return boot["BootSourceOverrideTarget"], boot["BootSourceOverrideEnabled"]


def test_once_is_once() -> None:
    """A one-time override holds for exactly one boot and then reads Disabled."""

    async def scene() -> None:
        world, netboots = booting_world()
        bmc = bmc_of(world)
        assert override(bmc, Target="Hdd", Enabled="Once", Mode="UEFI").status == 200
        assert shown_override(bmc) == ("Hdd", "Once")
        reset(bmc, "On")
        await settle()
        assert (shown_override(bmc), netboots.asked) == (("None", "Disabled"), [])
        reset(bmc, "ForceRestart")
        await settle()
        assert netboots.asked == ["node001"]

    play(scene())


def test_continuous_stays_until_disabled() -> None:
    """A continuous override survives boots; Disabled ends it; a target alone changes an override in force."""

    async def scene() -> None:
        world, netboots = booting_world()
        bmc = bmc_of(world)
        override(bmc, Target="Pxe", Enabled="Continuous")
        assert override(bmc, Target="Hdd").status == 200
        for reset_type in ("On", "ForceRestart"):
            reset(bmc, reset_type)
            await settle()
        assert (shown_override(bmc), netboots.asked) == (("Hdd", "Continuous"), [])
        override(bmc, Enabled="Disabled")
        assert shown_override(bmc) == ("None", "Disabled")

    play(scene())


def test_the_sel_has_power_events_and_a_post_that_never_ends() -> None:
    """Power on, power off and a firmware hang are in the System Event Log, newest first; ClearLog empties it."""

    async def scene() -> None:
        world = world_of()
        await world.replace(replace(world.machines["node001"], boots=False))
        bmc = bmc_of(world)
        reset(bmc, "On")
        await settle()
        reset(bmc, "ForceOff")
        await settle()
        entries = ask(bmc, "GET", SEL_ENTRIES).body["Members"]
        assert [(e["Severity"], e["Message"]) for e in entries] == [
            ("OK", "System is turning off."),
            ("Critical", "System Firmware Hang: POST did not complete."),
            ("OK", "System is turning on."),
        ]
        assert ask(bmc, "GET", entries[0]["@odata.id"]).body["Id"] == "3"
        clear = SEL_ENTRIES.replace("/Entries", "/Actions/LogService.ClearLog")
        assert ask(bmc, "POST", clear, {}).status == 204
        assert ask(bmc, "GET", SEL_ENTRIES).body["Members@odata.count"] == 0

    play(scene())


def test_closing_abandons_a_reset_in_progress() -> None:
    """A BMC that is closed leaves no task behind."""

    async def scene() -> None:
        world, _ = booting_world()
        bmc = bmc_of(world)
        reset(bmc, "On")
        await settle()
        reset(bmc, "ForceOff")
        await bmc.close()
        assert asyncio.all_tasks() == {asyncio.current_task()}

    play(scene())
