"""The lab's fabric: real ibsim, OpenSM and tools show what the machines' cables are. No root needed."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import UTC, datetime
from ipaddress import ip_network
from pathlib import Path

import pytest

from clusterctl.cabling.explain.verify import CablingVerification, verify
from clusterctl.edges.infiniband import IbnetdiscoverReader
from clusterctl.fleet.errors import EdgeError
from clusterctl.fleet.fabric.topology import Fabric
from clusterctl.fleet.fabric.wiring import PlannedCable, PortName, WiringPlan
from clusterctl.fleet.finding import Origin
from clusterctl.fleet.node import Guid
from clusterctl.formats.infiniband.fabric_file import decode_fabric
from clusterctl.formats.infiniband.ibnetdiscover import parse_ibnetdiscover
from clusterctl.ports import Deadline
from clusterctl_lab.emulators.fabric import LabFabric, trunks
from clusterctl_lab.healthy import build
from clusterctl_lab.layout import Layout
from clusterctl_lab.machine import Machine
from clusterctl_lab.world import Delays, World
from tests.paths import ROOT

pytestmark = pytest.mark.skipif(
    shutil.which("ibsim") is None or not Path("/usr/sbin/opensm").exists(), reason="ibsim-utils or opensm is missing"
)
LAYOUT = Layout(ip_network("10.77.0.0/16"))


class UtcClock:
    def now(self) -> datetime:
        return datetime.now(UTC)


class InstalledHosts:
    """A HostFace whose hosts are all installed and boot at once."""

    def installed(self, machine: Machine) -> bool:
        return True

    async def install(self, machine: Machine, disk_serial: str, user_data: bytes) -> None:
        raise AssertionError("not in these tests")

    async def boot(self, machine: Machine) -> None:
        return

    async def halt(self, machine: Machine) -> None:
        return


def world_of(hosts: int, *, running: bool = True) -> World:
    machines = (build(number, LAYOUT, "x") for number in range(1, hosts + 1))
    world = World(LAYOUT, {m.name: m for m in machines}, Delays(power_off=0, post=0))
    world.hosts = InstalledHosts()
    for state in world.states.values():
        state.power = state.running = running
    return world


def plan_of(world: World) -> WiringPlan:
    """What the machines' cables are now, as a plan."""
    machines = world.machines.values()
    host_cables = [
        PlannedCable(PortName(m.name, hca.name), PortName(hca.cable.switch, str(hca.cable.port)))
        for m in machines
        for hca in m.hcas
    ]
    trunk_cables = [
        PlannedCable(PortName(a.switch, str(a.port)), PortName(b.switch, str(b.port))) for a, b in trunks(machines)
    ]
    return WiringPlan((*host_cables, *trunk_cables), frozenset(world.machines))


def reader(state_dir: Path) -> IbnetdiscoverReader:
    return IbnetdiscoverReader(
        UtcClock(),
        Origin.SIMULATED,
        command=(str(state_dir / "bin/ibnetdiscover"),),
        sminfo=(str(state_dir / "bin/sminfo"),),
    )


async def text_of(state_dir: Path) -> str:
    observed = await asyncio.to_thread(reader(state_dir).ibnetdiscover, Deadline.after(60))
    return observed.value


async def verified(state_dir: Path, plan: WiringPlan, world: World) -> CablingVerification:
    hosts = {Guid(h.guid): PortName(m.name, h.name) for m in world.machines.values() for h in m.hcas}
    return verify(plan, parse_ibnetdiscover(await text_of(state_dir)), hosts, host_gbps=400.0)


@asynccontextmanager
async def lab(world: World, state_dir: Path) -> AsyncIterator[LabFabric]:
    fabric = LabFabric()
    await fabric.start(world, state_dir)
    try:
        yield fabric
    finally:
        await fabric.close()


def test_healthy_lab_is_as_planned(tmp_path):
    """8 hosts × 8 rails: every cable at 400 Gb/s where the machines have it, by the real tools, routed as a fat tree."""

    async def scenario() -> CablingVerification:
        world = world_of(8)
        async with lab(world, tmp_path):
            return await verified(tmp_path, plan_of(world), world)

    verification = asyncio.run(scenario())
    assert verification.explanations == ()
    assert verification.right == 64 + 64
    assert verification.hosts["node001"].slowest_gbps == 400
    assert "ftree tables configured" in (tmp_path / "fabric/opensm.log").read_text()


def test_cables_follow_the_world(tmp_path):
    """A swap shows at once as a swap, an unplugged cable as missing, a slow adapter as slow; healed, all is silent."""

    async def scenario() -> list[list[tuple[str, tuple[str, ...]]]]:
        world, seen = world_of(4), []
        plan, healthy = plan_of(world), dict(world.machines)

        async def look() -> None:
            found = await verified(tmp_path, plan, world)
            seen.append(sorted((e.kind.value, e.nodes) for e in found.explanations))

        async with lab(world, tmp_path):
            a, b, *rest = healthy["node002"].hcas
            swapped = (replace(a, cable=b.cable), replace(b, cable=a.cable), *rest)
            await world.replace(replace(healthy["node002"], hcas=swapped))
            await look()
            first, *others = healthy["node003"].hcas
            await world.replace(replace(healthy["node003"], hcas=(replace(first, cable=None), *others)))
            await look()
            await world.replace(replace(healthy["node003"], hcas=(replace(first, rate_gbps=200), *others)))
            await look()
            for machine in healthy.values():
                await world.replace(machine)
            await look()
        return seen

    swap = ("wrong_rail", ("node002",))
    assert asyncio.run(scenario()) == [
        [swap],
        [("missing_link", ("node003",)), swap],
        [("down_speed", ("node003",)), swap],
        [],
    ]


def test_swap_between_two_machines(tmp_path):
    """Two machines whose cables are exchanged one after the other end up exchanged, not lost."""

    async def scenario() -> CablingVerification:
        world = world_of(2)
        plan = plan_of(world)
        async with lab(world, tmp_path):
            one, two = world.machines["node001"], world.machines["node002"]
            ends = one.hcas[0].cable, two.hcas[0].cable
            await world.replace(replace(one, hcas=(replace(one.hcas[0], cable=ends[1]), *one.hcas[1:])))
            await world.replace(replace(two, hcas=(replace(two.hcas[0], cable=ends[0]), *two.hcas[1:])))
            return await verified(tmp_path, plan, world)

    (found,) = asyncio.run(scenario()).explanations
    assert (found.kind.value, found.nodes) == ("swapped", ("node001", "node002"))


def test_links_are_up_only_while_the_host_runs(tmp_path):
    """Links come with the boot and go with the power, seen through World.set_power."""

    async def scenario() -> list[int]:
        world, counts = world_of(2, running=False), []

        async def look() -> None:
            fabric = parse_ibnetdiscover(await text_of(tmp_path))
            counts.append(sum(d.description.startswith("node001 ") for d in fabric.devices.values()))

        async with lab(world, tmp_path):
            await look()
            await world.set_power("node001", on=True)
            await world.states["node001"].boot_task
            await look()
            await world.set_power("node001", on=False)
            await look()
        return counts

    assert asyncio.run(scenario()) == [0, 8, 0]


def test_link_rates_read_as_ndr_in_every_tool(tmp_path):
    """NDR shows as 106.25 Gb/s a lane in iblinkinfo, and more readers than ibsim serves at once all get an answer."""

    async def output_of(*argv: str) -> str:
        ran = await asyncio.create_subprocess_exec(tmp_path / "bin" / argv[0], *argv[1:], stdout=subprocess.PIPE)
        stdout, _ = await ran.communicate()
        return stdout.decode()

    async def scenario() -> list[str]:
        world = world_of(1)
        async with lab(world, tmp_path):
            return await asyncio.gather(output_of("iblinkinfo", "-l"), *(output_of("sminfo") for _ in range(11)))

    links, *masters = asyncio.run(scenario())
    assert links.count("4X        106.25 Gbps Active/  LinkUp") == 2 * (8 + 64)
    assert all("SMINFO_MASTER" in answer for answer in masters)


def test_iblinkinfo_shows_the_same_links(tmp_path):
    """What the real iblinkinfo -l prints of a lab has the links and rates that ibnetdiscover has."""

    async def scenario() -> tuple[Fabric, Fabric]:
        world = world_of(1)
        async with lab(world, tmp_path):
            links = IbnetdiscoverReader(UtcClock(), Origin.SIMULATED, (str(tmp_path / "bin/iblinkinfo"), "-l"))
            found = await asyncio.to_thread(links.ibnetdiscover, Deadline.after(60))
            return tuple(decode_fabric(text.encode(), file="lab") for text in (found.value, await text_of(tmp_path)))

    found, expected = (sorted(link.rate for link in fabric.links) for fabric in asyncio.run(scenario()))
    assert len(found) == 8 + 64
    assert found == expected


def test_two_labs_side_by_side(tmp_path):
    """Two labs do not see each other; when one ends the other goes on, and the ended one's tools report that it ended."""

    async def scenario() -> None:
        one, two = world_of(1), world_of(3)
        async with lab(one, tmp_path / "one"):
            async with lab(two, tmp_path / "two"):
                assert (await verified(tmp_path / "one", plan_of(one), one)).observed == 8 + 64
                assert (await verified(tmp_path / "two", plan_of(two), two)).observed == 24 + 64
            assert (await verified(tmp_path / "one", plan_of(one), one)).explanations == ()
            with pytest.raises(EdgeError, match="not running"):
                await text_of(tmp_path / "two")

    for name in ("one", "two"):
        (tmp_path / name).mkdir()
    asyncio.run(scenario())


def test_a_hundred_hosts(tmp_path):
    """100 hosts × 8 rails come up and are as planned: 800 host links and the trunks of 32 leaves."""

    async def scenario() -> CablingVerification:
        world = world_of(100)
        async with lab(world, tmp_path):
            return await verified(tmp_path, plan_of(world), world)

    verification = asyncio.run(scenario())
    assert verification.explanations == ()
    assert verification.right == 800 + 128


_DAEMON = """
import asyncio, sys
from pathlib import Path
from lab.tests.emulators.fabric.test_fabric import LabFabric, world_of

async def main():
    await LabFabric().start(world_of(1), Path(sys.argv[1]))
    print("up", flush=True)
    await asyncio.Event().wait()

asyncio.run(main())
"""


def test_children_die_with_a_killed_lab(tmp_path):
    """A lab whose process is killed with SIGKILL leaves no ibsim and no OpenSM behind."""
    root = ROOT
    daemon = subprocess.Popen([sys.executable, "-c", _DAEMON, tmp_path], stdout=subprocess.PIPE, text=True, cwd=root)
    assert daemon.stdout is not None
    assert daemon.stdout.readline() == "up\n"
    children = _children(daemon.pid)
    ends = [os.pidfd_open(pid) for pid in children]
    assert len(ends) == 2
    daemon.send_signal(signal.SIGKILL)
    daemon.wait()
    try:
        for end in ends:
            assert _ended_within(end, 10)
    finally:
        for end in ends:
            os.close(end)
    daemon.stdout.close()


def _children(pid: int) -> list[int]:
    listed = Path(f"/proc/{pid}/task/{pid}/children").read_text()
    return [int(child) for child in listed.split()]


def _ended_within(pidfd: int, seconds: float) -> bool:
    import select

    poll = select.poll()
    poll.register(pidfd, select.POLLIN)
    return bool(poll.poll(seconds * 1000))


def test_a_hundred_hosts_switched_on_and_off_at_once_are_followed(tmp_path: Path) -> None:
    """Eight hundred links change together: simulator and subnet manager never wait for each other for ever."""

    async def scenario() -> None:
        world = world_of(100, running=False)
        async with lab(world, tmp_path):
            for on in (True, False, True):
                await asyncio.gather(*(world.set_power(name, on=on) for name in world.machines))
                await asyncio.gather(*(state.boot_task for state in world.states.values() if on and state.boot_task))
                found = await verified(tmp_path, plan_of(world), world)
                assert bool(found.explanations) is not on

    asyncio.run(scenario())
