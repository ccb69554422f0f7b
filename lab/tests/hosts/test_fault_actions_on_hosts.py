"""Hosts that misbehave for real: each fault is there when it is reported, survives a reboot, and can be removed."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path

import pytest

from clusterctl.formats.host.cpu_memory import parse_cpu_share
from clusterctl_burnin.package_data import text_of
from clusterctl_lab.faults import inject
from clusterctl_lab.hosts import rail_interface
from clusterctl_lab.hosts.names import LabNames
from clusterctl_lab.hosts.quota import CpuQuota
from clusterctl_lab.machine import Machine, Shaping
from lab.tests.hosts.hosts_kit import TestLab, eventually, lab, leftovers, needs_lab, ssh_answers

pytestmark = [pytest.mark.lab, pytest.mark.soak, needs_lab]

NAME = "tills"


async def banner(it: TestLab, machine: Machine) -> str:
    """What port 22 does: `ssh` (it greets), `refused`, `silent` (it accepts the connection and sends nothing), `cut`."""
    try:
        reader, writer = await asyncio.wait_for(asyncio.open_connection(machine.address, 22), 1.5)
    except TimeoutError:
        return "cut"
    except OSError as error:
        return "refused" if isinstance(error, ConnectionRefusedError) else "cut"
    try:
        line = await asyncio.wait_for(reader.readline(), 1.5)
    except TimeoutError:
        return "silent"
    finally:
        writer.close()
    return "ssh" if line.startswith(b"SSH-2.0") else "closed"


async def hours_ahead(it: TestLab, machine: Machine) -> float:
    _, seconds = await it.sh(machine, "python3 -c 'import time; print(time.time())'")
    return round((float(seconds) - time.time()) / 3600, 2)


async def free_bytes(it: TestLab, machine: Machine, path: str = "/tmp") -> int:
    return int((await it.sh(machine, f"df --output=avail -B1 {path} | tail -1"))[1])


async def can_write(it: TestLab, machine: Machine) -> bool:
    return (await it.sh(machine, "touch /written && rm /written"))[0] == 0


async def share_of_a_core(it: TestLab, machine: Machine) -> float:
    """What burn-in's own probe gets, in a session of its own: work of the highest priority, whatever else runs here."""
    argv = (
        "systemd-run",
        "--quiet",
        "--wait",
        "--pipe",
        "python3",
        "-I",
        "-c",
        text_of("node/programs/cpu_share.py"),
        "2",
    )
    ran = await it.hosts.exec(machine.name, argv, timeout_s=600)  # a tenth of a core, of a machine that is crowded
    return parse_cpu_share(ran.stdout.decode()).best


async def started(it: TestLab, machine: Machine) -> bool:
    return (await it.sh(machine, "systemctl is-system-running"))[1] == "running"


async def restart(it: TestLab, machine: Machine) -> None:
    await it.hosts.halt(machine)
    await it.hosts.boot(machine)


Look = Callable[[TestLab, Machine], Awaitable[object]]


async def becomes(look: Look, it: TestLab, machine: Machine, wanted: object) -> bool:
    """Return whether a look gives what is wanted; on a crowded machine a greeting may come too late for the first."""

    async def is_so() -> bool:
        return await look(it, machine) == wanted

    return await eventually(is_so)


ILLS: tuple[tuple[str, str, Look, object, object], ...] = (
    ("hung-host", "", banner, "ssh", "silent"),
    ("sshd-stopped", "", banner, "ssh", "refused"),
    ("network-lost", "", banner, "ssh", "cut"),
    ("clock-off", "-2", hours_ahead, 0.0, -2.0),
    ("read-only-root", "", can_write, True, False),
)


def test_ills_come_stay_over_a_reboot_and_go() -> None:
    """Each ill shows at once when it is injected, is there after a power cycle, and is gone when the machine is healed."""

    async def scenario() -> None:
        async with lab(1, name=NAME, subnet="10.223.0.0/16") as it:
            (healthy,) = it.machines
            await it.up()
            assert await eventually(lambda: ssh_answers(healthy.address))
            for fault, part, look, well, ill in ILLS:
                broken = inject({healthy.name: healthy}, fault, f"{healthy.name}:{part}" if part else healthy.name)
                assert await becomes(look, it, healthy, well), fault
                await it.hosts.refresh(broken)
                assert await becomes(look, it, healthy, ill), fault
                await restart(it, broken)
                assert await becomes(look, it, healthy, ill), f"{fault} after a reboot"
                await it.hosts.refresh(healthy)
                assert await eventually(lambda: ssh_answers(healthy.address)), f"{fault} healed"
                assert await becomes(look, it, healthy, well), f"{fault} healed"

    asyncio.run(scenario())
    assert not leftovers(NAME)


def test_a_full_file_system_is_full_and_small() -> None:
    """Not a byte can be written to /var, what was there can still be read, and the lab's own disk has not filled."""

    async def scenario() -> None:
        async with lab(1, name=NAME, subnet="10.223.0.0/16") as it:
            (healthy,) = it.machines
            await it.up()
            _, before = await it.sh(healthy, "ls /var")
            await it.hosts.refresh(inject({healthy.name: healthy}, "full-disk", f"{healthy.name}:/var"))
            assert await free_bytes(it, healthy, "/var") == 0
            assert (await it.sh(healthy, "echo more >/var/more"))[0] != 0
            assert set(before.split()) <= set((await it.sh(healthy, "ls /var"))[1].split())
            assert await free_bytes(it, healthy, "/") > 2**20
            await it.hosts.refresh(healthy)
            assert (await it.sh(healthy, "ls /var")) == (0, before)

    asyncio.run(scenario())


def test_a_straggler_gets_its_quota_and_no_more() -> None:
    """Work gets 10 % of a core; lifted, more; again after a reboot; the quota's cgroup goes with the lab."""

    async def scenario() -> None:
        async with lab(1, name=NAME, subnet="10.223.0.0/16") as it:
            (healthy,) = it.machines

            async def more_than_the_quota() -> bool:
                return await share_of_a_core(it, healthy) > 0.2

            await it.up()
            assert await eventually(lambda: started(it, healthy))
            broken = inject({healthy.name: healthy}, "cpu-straggler", healthy.name)
            await it.hosts.refresh(broken)
            assert await share_of_a_core(it, healthy) < 0.2
            await it.hosts.refresh(healthy)
            assert await eventually(more_than_the_quota)
            await restart(it, broken)
            assert await share_of_a_core(it, healthy) < 0.2

    asyncio.run(scenario())
    legacy = CpuQuota.of(LabNames(NAME)).legacy
    assert legacy is None or not Path(legacy).exists()


RECEIVE = """systemd-run --quiet --service-type=notify --property=NotifyAccess=all python3 -c '
import os, socket
server = socket.create_server(("", 5001))
os.system("systemd-notify --ready")
while True:
    connection, _ = server.accept()
    while connection.recv(65536):
        pass
    connection.sendall(b"done")
'"""
SEND = """python3 -c '
import socket, time
connection = socket.create_connection(("{target}", 5001))
began = time.monotonic()
connection.sendall(bytes(1 << 20))
connection.shutdown(socket.SHUT_WR)
connection.recv(100)
print(8 / (time.monotonic() - began))
'"""


def test_a_slow_rail_is_slow_both_ways_and_alone() -> None:
    """20 Mbit/s on one rail of one host, to it and from it; the other rails and the healed one are fast."""

    async def scenario() -> None:
        async with lab(2, name=NAME, subnet="10.223.0.0/16") as it:
            await it.up()
            first, second = it.machines
            assert await eventually(lambda: started(it, first))
            assert await eventually(lambda: started(it, second))
            for machine in it.machines:
                assert (await it.sh(machine, RECEIVE))[0] == 0

            async def mbit_s(source: Machine, target: Machine, rail: int) -> float:
                address = rail_interface(it.settings.layout, target, rail).ip
                rc, rate = await it.sh(source, SEND.format(target=address))
                assert rc == 0
                return float(rate)

            async def unshaped(source: Machine, target: Machine, rail: int) -> bool:
                """Return whether it is faster than the shaped one can be; a crowded machine may need several tries."""

                async def is_fast() -> bool:
                    return await mbit_s(source, target, rail) > 30

                return await eventually(is_fast)

            await it.hosts.refresh(inject({first.name: first}, "slow-nic", f"{first.name}:mlx5_2"))
            assert await mbit_s(first, second, 2) < 30
            assert await mbit_s(second, first, 2) < 30
            assert await unshaped(first, second, 1)
            sometimes = replace(first.hcas[1], shaping=Shaping(5, share=0.5))
            await it.hosts.refresh(replace(first, hcas=(first.hcas[0], sometimes, *first.hcas[2:])))
            assert await unshaped(first, second, 2)
            await it.hosts.refresh(first)
            assert await unshaped(first, second, 1)

    asyncio.run(scenario())
    assert not leftovers(NAME)
