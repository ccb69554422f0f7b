"""`lab up --installed`: every host installed and running at once, past the installer, for sweeps over many hosts."""

from __future__ import annotations

import asyncio
import json
import socket
import time

from clusterctl.fleet.errors import EnvironmentBrokenError
from clusterctl_lab.boot import BootTarget
from clusterctl_lab.keys import ssh_key_pair
from clusterctl_lab.machine import Machine
from clusterctl_lab.site_files import SSH_USER
from clusterctl_lab.sockets import OpenSocket, plain
from clusterctl_lab.world import World

SSH_PORT = 22
ANSWER_SECONDS = 60.0
RETRY_SECONDS = 0.1


async def install_all(world: World, authorized_key: str, opened: OpenSocket = plain) -> str:
    """Install, power on, and wait until each SSH server answers; machines that never boot are left out, and
    hosts that a fault keeps silent are not waited for. `opened` opens the sockets to them.

    Returns the hosts' keys as known_hosts(5).
    """
    bootable = [machine for machine in world.machines.values() if machine.boots]
    keys = {machine.name: ssh_key_pair() for machine in bootable}

    async def install(machine: Machine) -> None:
        drive = next(drive for drive in machine.drives if drive.boot)
        user_data = _user_data(machine, keys[machine.name], authorized_key)
        await world.install(machine.name, drive.serial, user_data)
        state = world.states[machine.name]
        state.boot_target, state.boot_once = BootTarget.HDD, True
        await world.set_power(machine.name, on=True)

    await asyncio.gather(*(install(machine) for machine in bootable))
    boots = (world.states[machine.name].boot_task for machine in bootable)
    await asyncio.gather(*(task for task in boots if task is not None))
    await asyncio.gather(*(_answers(machine, opened) for machine in bootable if not _is_silent(machine)))
    return "".join(f"{machine.address} {keys[machine.name][1]}\n" for machine in bootable)


def _user_data(machine: Machine, key: tuple[str, str], authorized_key: str) -> bytes:
    """#cloud-config as the installer's; JSON is YAML."""
    config = {
        "hostname": machine.name,
        "users": [{"name": SSH_USER, "ssh_authorized_keys": [authorized_key], "sudo": "ALL=(ALL) NOPASSWD:ALL"}],
        "ssh_keys": {"ed25519_private": key[0], "ed25519_public": key[1]},
        "ssh_pwauth": False,
    }
    return b"#cloud-config\n" + json.dumps(config).encode()


def _is_silent(machine: Machine) -> bool:
    system = machine.system
    return system.frozen or system.sshd_stopped or system.network_lost


async def _answers(machine: Machine, opened: OpenSocket) -> None:
    give_up = time.monotonic() + ANSWER_SECONDS
    while not (await _banner(machine.address, opened)).startswith(b"SSH-2.0"):
        if time.monotonic() > give_up:
            raise EnvironmentBrokenError(
                f"its SSH server does not answer within {ANSWER_SECONDS:.0f} s",
                where=f"{machine.name} ({machine.address})",
                remedy="Start fewer hosts; this machine is too small or too busy.",
            )
        await asyncio.sleep(RETRY_SECONDS)


async def _banner(address: str, opened: OpenSocket) -> bytes:
    """Return the first line that the server sends; empty while no server listens."""
    try:
        async with asyncio.timeout(ANSWER_SECONDS):
            reader, writer = await asyncio.open_connection(sock=await _connected(address, opened))
            try:
                return await reader.readline()
            finally:
                writer.close()
    except (OSError, TimeoutError):
        return b""


async def _connected(address: str, opened: OpenSocket) -> socket.socket:
    own = await asyncio.to_thread(opened, address)
    own.setblocking(False)
    try:
        await asyncio.get_running_loop().sock_connect(own, (address, SSH_PORT))
    except BaseException:
        own.close()
        raise
    return own
