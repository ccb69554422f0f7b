"""What the lab's world keeps count of."""

from __future__ import annotations

import asyncio
from ipaddress import ip_network

import pytest

from clusterctl.fleet.errors import EdgeError
from clusterctl_lab.healthy import build
from clusterctl_lab.layout import Layout
from clusterctl_lab.machine import Machine
from clusterctl_lab.world import Delays, World


class BrokenHosts:
    """A HostFace that cannot write an OS."""

    def installed(self, machine: Machine) -> bool:
        return False

    async def install(self, machine: Machine, disk_serial: str, user_data: bytes) -> None:
        raise OSError("No space left on device")

    async def boot(self, machine: Machine) -> None:
        raise AssertionError("nothing is installed")

    async def halt(self, machine: Machine) -> None:
        raise AssertionError("nothing runs")


def world_of_one() -> World:
    machine = build(1, Layout(ip_network("10.77.0.0/16")), "x")
    return World(Layout(ip_network("10.77.0.0/16")), {machine.name: machine}, Delays())


def test_an_install_counts_even_if_it_fails() -> None:
    """Whatever begins to overwrite a disk is counted, so that nothing can be written twice unseen."""
    world = world_of_one()
    world.hosts = BrokenHosts()
    with pytest.raises(OSError, match="No space left"):
        asyncio.run(world.install("node001", "BOSS0001", b""))
    assert world.states["node001"].installs == 1


def test_no_install_without_hosts() -> None:
    """A world that has nothing to run an OS on reports it, and counts nothing."""
    world = world_of_one()
    with pytest.raises(EdgeError, match="nothing to run its OS on"):
        asyncio.run(world.install("node001", "BOSS0001", b""))
    assert world.states["node001"].installs == 0
