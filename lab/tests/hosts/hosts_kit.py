"""A small lab of real hosts for tests: started, swept and erased around each."""

from __future__ import annotations

import asyncio
import os
import shutil
import socket
import subprocess
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from ipaddress import IPv4Network
from pathlib import Path
from typing import Any

import pytest

from clusterctl_lab.healthy import build
from clusterctl_lab.hosts import (
    ExitReason,
    HostSettings,
    NamespaceHosts,
    default_state_dir,
    erase_disks,
    sweep_leftovers,
)
from clusterctl_lab.image import ensure_image
from clusterctl_lab.layout import Layout
from clusterctl_lab.machine import Machine
from tests.processes import commands

TOOLS = ("mmdebstrap", "ip", "nsenter", "unshare", "setpriv", "ssh", "ssh-keygen")
missing = [tool for tool in TOOLS if shutil.which(tool) is None]

needs_lab = pytest.mark.skipif(
    os.geteuid() != 0 or bool(missing), reason=f"lab hosts need root and {', '.join(missing) or 'nothing else'}"
)


@dataclass(frozen=True)
class TestLab:
    """`exits`: the arguments of `on_exit`."""

    __test__ = False

    hosts: NamespaceHosts
    machines: tuple[Machine, ...]
    exits: asyncio.Queue[tuple[str, ExitReason]]
    settings: HostSettings

    async def up(self, user_data: bytes = b"") -> None:
        """Install and boot all machines."""
        await asyncio.gather(*(self._up(machine, user_data) for machine in self.machines))

    async def _up(self, machine: Machine, user_data: bytes) -> None:
        await self.hosts.install(machine, machine.drives[0].serial, user_data)
        await self.hosts.boot(machine)

    async def sh(self, machine: Machine, script: str) -> tuple[int, str]:
        """Exit status and standard output of a shell script inside a host."""
        ran = await self.hosts.exec(machine.name, ("sh", "-c", script), timeout_s=600)
        return ran.rc, ran.stdout.decode().strip()


@asynccontextmanager
async def lab(
    count: int, *, name: str = "thosts", subnet: str = "10.214.0.0/16", **more: Any
) -> AsyncIterator[TestLab]:
    """A lab of `count` machines, none installed yet."""
    layout = Layout(IPv4Network(subnet))
    machines = tuple(build(index, layout, "secret") for index in range(1, count + 1))
    exits: asyncio.Queue[tuple[str, ExitReason]] = asyncio.Queue()

    async def on_exit(host: str, reason: ExitReason) -> None:
        await exits.put((host, reason))

    state_dir = default_state_dir(name)
    settings = HostSettings(name, layout, ensure_image(print), state_dir, **more)
    await sweep_leftovers(name)
    hosts = NamespaceHosts(settings, on_exit)
    try:
        await hosts.start()
        yield TestLab(hosts, machines, exits, settings)
    finally:
        await hosts.close()
        erase_disks(state_dir)


def leftovers(name: str) -> list[str]:
    """Whatever of lab `name` is on this machine: processes, interfaces, mounts, cgroups, run files."""
    found = [line for line in Path("/proc/self/mountinfo").read_text().splitlines() if f"/{name}/" in line]
    found += [f"link {link}" for _, link in socket.if_nameindex() if link.startswith(f"{name}-")]
    found += [str(path) for path in Path("/sys/fs/cgroup").glob(f"**/clusterctl-lab/{name}")]
    found += [f"namespace {path.name}" for path in Path("/run/netns").glob(f"{name}-*")]
    found += [str(path) for path in Path("/run/clusterctl-lab").glob(f"{name}/hosts")]
    return found + [command for command in commands() if f"/clusterctl-lab/{name}/" in command]


async def eventually(probe: Callable[[], Coroutine[Any, Any, bool]], seconds: float = 600.0) -> bool:
    """Return True as soon as `probe` does; False after `seconds`."""
    try:
        async with asyncio.timeout(seconds):
            while not await probe():  # noqa: ASYNC110 — what is waited for happens outside this process
                await asyncio.sleep(0.1)
    except TimeoutError:
        return False
    return True


async def ssh_answers(address: str) -> bool:
    """True when sshd sends its banner."""
    try:
        reader, writer = await asyncio.open_connection(address, 22)
    except OSError:
        return False
    try:
        return (await reader.readline()).startswith(b"SSH-2.0")
    except OSError:
        return False
    finally:
        writer.close()


def keypair(folder: Path, name: str) -> tuple[str, str]:
    """A fresh ed25519 key made by OpenSSH: private and public text; the files stay in `folder`."""
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "", "-f", str(folder / name)], check=True)
    return (folder / name).read_text(), (folder / f"{name}.pub").read_text().strip()


async def ssh(folder: Path, key: str, user: str, address: str, *command: str) -> subprocess.CompletedProcess[bytes]:
    """OpenSSH's client with the host keys in `folder`/known_hosts and no others."""
    argv: Sequence[str] = (
        *("ssh", "-F", "none", "-i", str(folder / key), "-o", "BatchMode=yes", "-o", "StrictHostKeyChecking=yes"),
        *("-o", f"UserKnownHostsFile={folder / 'known_hosts'}", "-o", "GlobalKnownHostsFile=none"),
        *(f"{user}@{address}", *command),
    )
    return await asyncio.to_thread(subprocess.run, argv, capture_output=True, timeout=600, check=False)
