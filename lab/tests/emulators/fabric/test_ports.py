"""Ports of the lab's fabric that the real ibportstate sets: the links follow, as on real switches. No root needed."""

from __future__ import annotations

import asyncio
import re
import subprocess
from dataclasses import replace
from pathlib import Path

from clusterctl.cabling.burn.plan import Lengths, plan_burn
from clusterctl.formats.infiniband.fabric_file import decode_fabric
from clusterctl.formats.infiniband.opensm import parse_dump_fts
from clusterctl_lab.emulators.fabric.port_states import asleep_among, disabled_among, parse_dump
from clusterctl_lab.emulators.fabric.topology import End
from lab.tests.emulators.fabric import test_fabric
from lab.tests.emulators.fabric.test_fabric import lab, plan_of, text_of, verified, world_of

pytestmark = test_fabric.pytestmark

_STATE = re.compile(r"^(?:LinkState|PhysLinkState):\.+(\w+)$", re.MULTILINE)
DUMP = """\
# Net status - Sat Jan  3 10:00:00 2026

Switch 64 "S-0000000000000300"\tnodeguid 300\tsysimgguid 300
#\tlinearcap 30720 FDBtop 26 portchange 0
#\tForwarding table 0-15: [0]FF [1]23 [2]27
300\t[0]\t"Sma Port"[0]\t lid 3 lmc 0 smlid 1  4x 10.0G Active/LinkUp
300\t[1]\t"H-0000000000000100"[1]\t  4x 50G Active/LinkUp
300\t[2]\t\t\t  4x 50G Down/Disabled
300\t[3]\t"S-0000000000000400"[1]\t  4x 50G Active/Polling\t# err_rate 30

Ca 1 "H-0000000000000100"\tnodeguid 100\tsysimgguid 100
101\t[1]\t"S-0000000000000300"[1]\t lid 7 lmc 0 smlid 1  4x 50G Active/LinkUp
# dumped 2 nodes
"""


async def tool(state_dir: Path, name: str, *argv: str) -> subprocess.CompletedProcess[str]:
    command = [state_dir / "bin" / name, *argv]
    return await asyncio.to_thread(subprocess.run, command, capture_output=True, text=True, timeout=600, check=False)


async def port(state_dir: Path, lid: str, number: int) -> tuple[str, ...]:
    """LinkState and PhysLinkState."""
    return tuple(_STATE.findall((await tool(state_dir, "ibportstate", "-L", lid, f"{number}", "query")).stdout)[:2])


async def set_port(state_dir: Path, lid: str, number: int, how: str) -> None:
    done = await tool(state_dir, "ibportstate", "-L", lid, f"{number}", how)
    assert done.returncode == 0, done.stderr


def lid_of(text: str, switch: str) -> str:
    found = re.search(rf'# "MF0;{switch}:[^"]*" .*port 0 lid (\d+)', text)
    assert found
    return found[1]


def test_dump_is_read():
    """The physical state of each port that a cable goes to, with the simulator's comments or without."""
    states = parse_dump(DUMP)
    leaf = "S-0000000000000300"
    assert states == {
        End(leaf, 1): "LinkUp",
        End(leaf, 2): "Disabled",
        End(leaf, 3): "Polling",
        End("H-0000000000000100", 1): "LinkUp",
    }
    assert disabled_among(states) == {End(leaf, 2)}
    waking = (End(leaf, 3), End("S-0000000000000400", 1))
    assert asleep_among(states, [waking, (End("H-0000000000000100", 1), End(leaf, 1))]) == {waking}


def test_a_disabled_port_is_down_at_both_ends_until_it_is_enabled(tmp_path: Path):
    """The link is gone and nothing else; hosts that come and go do not bring it back; enabled, all is as planned."""

    async def scenario() -> None:
        world = world_of(2)
        async with lab(world, tmp_path):
            whole = decode_fabric((await text_of(tmp_path)).encode(), file="whole")
            text = await text_of(tmp_path)
            leaf, spine = lid_of(text, "leaf-p1-r1"), lid_of(text, "spine-1")
            await set_port(tmp_path, leaf, 33, "disable")
            assert await port(tmp_path, leaf, 33) == ("Down", "Disabled")
            assert await port(tmp_path, spine, 1) == ("Down", "Polling")
            await world.set_power("node002", on=False)
            await world.set_power("node002", on=True)
            boot = world.states["node002"].boot_task
            assert boot is not None
            await boot
            cut = decode_fabric((await text_of(tmp_path)).encode(), file="cut")
            assert len(whole.links) - len(cut.links) == 1
            assert await port(tmp_path, leaf, 33) == ("Down", "Disabled")
            await set_port(tmp_path, leaf, 33, "enable")
            assert await port(tmp_path, leaf, 33) == ("Active", "LinkUp")
            found = await verified(tmp_path, plan_of(world), world)
            assert not found.explanations

    asyncio.run(scenario())


def test_a_disabled_port_outlives_a_new_simulator(tmp_path: Path):
    """As when an adapter is taken out; the port that led to it has nothing to disable any more."""

    async def scenario() -> None:
        world = world_of(2)
        async with lab(world, tmp_path):
            leaf = lid_of(await text_of(tmp_path), "leaf-p1-r1")
            await set_port(tmp_path, leaf, 34, "disable")
            machine = world.machines["node001"]
            await world.replace(replace(machine, hcas=machine.hcas[:-1]))
            leaf = lid_of(await text_of(tmp_path), "leaf-p1-r1")
            assert await port(tmp_path, leaf, 34) == ("Down", "Disabled")

    asyncio.run(scenario())


def test_a_reset_port_trains_again(tmp_path: Path):
    """The link is back when ibportstate returns."""

    async def scenario() -> None:
        world = world_of(1)
        async with lab(world, tmp_path):
            leaf = lid_of(await text_of(tmp_path), "leaf-p1-r2")
            await set_port(tmp_path, leaf, 33, "reset")
            assert await port(tmp_path, leaf, 33) == ("Active", "LinkUp")
            assert not (await verified(tmp_path, plan_of(world), world)).explanations

    asyncio.run(scenario())


def test_every_tool_answers_of_the_whole_fabric(tmp_path: Path):
    """Asked from a leaf, counters of all switches can be read (ftree leads from no spine to another), and a burn can be
    planned from the live tables.
    """

    async def scenario() -> None:
        async with lab(world_of(2), tmp_path):
            errors = await tool(tmp_path, "ibqueryerrors")
            assert (errors.returncode, errors.stderr) == (0, "")
            assert "26 nodes checked, 0 bad nodes found" in errors.stdout
            for argv in (
                ("smpquery", "nodeinfo", "2"),
                ("perfquery", "-x", "2", "1"),
                ("iblinkinfo",),
                ("ibswitches",),
            ):
                answer = await tool(tmp_path, *argv)
                assert answer.returncode == 0, answer.stderr
                assert answer.stdout
            tables = await tool(tmp_path, "dump_fts")
            assert tables.returncode == 0, tables.stderr
            fabric = decode_fabric((await text_of(tmp_path)).encode(), file="fabric")
            log = (tmp_path / "fabric/opensm.log").read_text()
            assert "ftree tables configured" in log
            plan = plan_burn(fabric, parse_dump_fts(tables.stdout.splitlines(), file="fts"), None, Lengths())
            assert plan.reached
            assert not plan.lost

    asyncio.run(scenario())
