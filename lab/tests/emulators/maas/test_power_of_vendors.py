"""The emulated MAAS's power driver gets along with every vendor's BMC."""

from __future__ import annotations

import asyncio
from ipaddress import IPv4Network
from pathlib import Path

import pytest

from clusterctl_lab.boot import BootTarget
from clusterctl_lab.emulators.maas.bmc import RedfishPower
from clusterctl_lab.emulators.redfish import serve_bmcs
from clusterctl_lab.healthy import build
from clusterctl_lab.layout import Layout
from clusterctl_lab.vendor import Vendor
from clusterctl_lab.world import Delays, World
from lab.tests.emulators.redfish.bmc_kit import PASSWORD, TestCa
from tests.ports import reserve_port

LAYOUT = Layout(IPv4Network("127.94.0.0/16"))
SLOW_POST = Delays(power_off=0.01, post=30.0, netboot_timeout=0.05)


@pytest.mark.parametrize("vendor", list(Vendor))
def test_boots_once_from_the_network(tmp_path: Path, vendor: Vendor) -> None:
    """Switched on, the machine is in POST with an override for one boot from the network; switched off, it is off."""
    machine = build(1, LAYOUT, PASSWORD, vendor=vendor)
    address = machine.bmc.address
    world = World(LAYOUT, {machine.name: machine}, SLOW_POST)
    ca = TestCa(tmp_path)
    port = reserve_port(address)
    parameters = {"power_address": f"{address}:{port}", "power_user": "root", "power_pass": PASSWORD}

    async def scenario() -> tuple[str, BootTarget, bool, str]:
        servers = await serve_bmcs(world, ca.server_context, port)
        driver, state = RedfishPower(ca.client_context()), world.states[machine.name]
        try:
            await driver.on(parameters)
            on, target, once = await driver.query(parameters), state.boot_target, state.boot_once
            await driver.off(parameters)
            return on, target, once, await driver.query(parameters)
        finally:
            await servers.close()

    assert asyncio.run(scenario()) == ("on", BootTarget.PXE, True, "off")
