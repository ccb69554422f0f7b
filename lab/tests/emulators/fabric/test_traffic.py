"""What hosts send is counted at every port of its way, as the real tools read it. No root needed."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest

from clusterctl.cabling.burn.verdicts import coverage_from_counters
from clusterctl.cabling.health.symptoms import HealthWindow
from clusterctl.edges.infiniband import CounterReader
from clusterctl.fleet.fabric.telemetry import Telemetry
from clusterctl.fleet.fabric.topology import Fabric, PortId
from clusterctl.fleet.finding import Origin
from clusterctl.formats.infiniband.fabric_file import decode_telemetry
from clusterctl.formats.infiniband.ibnetdiscover import parse_ibnetdiscover
from clusterctl.ports import Deadline
from clusterctl_burnin.limits.fabric_reading import shipped_fabric_limits
from clusterctl_lab.emulators.fabric import LabFabric
from clusterctl_lab.emulators.fabric.traffic import FULL, NOTES, flows_noted
from lab.tests.emulators.fabric.test_fabric import UtcClock, text_of, world_of

pytestmark = pytest.mark.skipif(
    shutil.which("ibsim") is None or not Path("/usr/sbin/opensm").exists(), reason="ibsim-utils or opensm is missing"
)
SENT_S = 100.0


def note(root: Path, number: int, content: object) -> None:
    folder = root / NOTES
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{number}.json").write_text(content if isinstance(content, str) else json.dumps(content))


def test_a_flow_counts_on_each_link_of_its_way_and_a_dirty_link_makes_errors(tmp_path):
    """node001 mlx5_0 sends to node002 mlx5_0 on the same leaf; of the 100 s that its note has, both links carry all."""
    world = world_of(2)
    source, target = (world.machines[name].hcas[0] for name in ("node001", "node002"))
    dirty = replace(target, errors=replace(target.errors, symbol_per_hour=36_000.0, load_downs=1))
    node = world.machines["node002"]
    world.machines["node002"] = replace(node, hcas=(dirty, *node.hcas[1:]))

    async def scenario() -> tuple[str, list[str]]:
        fabric = LabFabric()
        await fabric.start(world, tmp_path, lambda: [tmp_path / "host"])
        try:
            counters = CounterReader(UtcClock(), Origin.SIMULATED, (str(tmp_path / "bin/ibqueryerrors"),))
            seen = await text_of(tmp_path)
            readings = [(await asyncio.to_thread(counters.traffic, Deadline.after(60))).value]
            now = time.time()
            flow = {"source": source.guid, "target": target.guid, "began": now - SENT_S, "ended": now}
            note(tmp_path / "host", 1, flow)
            note(tmp_path / "host", 2, "no note")
            readings.append((await asyncio.to_thread(counters.traffic, Deadline.after(60))).value)
            readings.append((await asyncio.to_thread(counters.traffic, Deadline.after(60))).value)
            return seen, readings
        finally:
            await fabric.close()

    text, readings = asyncio.run(scenario())
    seen = parse_ibnetdiscover(text)
    first, second, third = (decode_telemetry(one.encode(), seen, file="x") for one in readings)
    shares = carried(seen, first, second)
    assert sorted(shares.values()) == pytest.approx([100 * FULL, 100 * FULL], abs=1.0)
    assert {(port.guid, port.number) for port in shares} == {(source.guid, 1), port_of(seen, target.guid)}
    far = PortId(*port_of(seen, target.guid))
    assert second.counters[far].values["SymbolErrorCounter"] == pytest.approx(10 * SENT_S, abs=2)
    assert second.counters[far].values["LinkDownedCounter"] == 1
    assert carried(seen, second, third) == {}, "a note is counted once"


def carried(fabric: Fabric, before: Telemetry, after: Telemetry) -> dict[PortId, float]:
    """Return by sending port the share that passed, where it is more than the tools' own packets."""
    loads = coverage_from_counters(fabric, HealthWindow(before, after, SENT_S, shipped_fabric_limits("ndr")))
    return {one.source: one.share for one in loads if one.share is not None and one.share > 1}


def port_of(fabric: Fabric, guid: str) -> tuple[str, int]:
    """Return the switch port at which the adapter is."""
    for link in fabric.cables():
        for near, far in ((link.a, link.b), (link.b, link.a)):
            if near.guid == guid:
                return far.guid, far.number
    raise AssertionError(f"{guid} has no link")


@pytest.mark.parametrize(
    "text", ["", "[]", "{}", '{"source": 1}', '{"source": "a", "target": "b", "began": "x"}', "\xff"]
)
def test_what_is_no_note_is_passed_over(tmp_path, text):
    note(tmp_path, 1, text)
    assert list(flows_noted([tmp_path, tmp_path / "absent"])) == []


def test_a_flow_runs_for_as_long_as_its_process_lives(tmp_path):
    """A killed process never notes its end: it counts nothing more, as its lock is gone."""
    sender = "import sys; from clusterctl_lab.emulators.host_tools.host import flows; flows.begin('a', 'b'); print(flush=True); sys.stdin.read()"
    where = {**os.environ, "CLUSTERCTL_LAB_FLOWS": str(tmp_path / NOTES)}
    (tmp_path / NOTES).mkdir(parents=True)
    argv = [sys.executable, "-c", sender]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=where) as process:
        assert process.stdout is not None
        assert process.stdout.readline()
        assert [one.ended for one in flows_noted([tmp_path])] == [None]
        process.kill()
        process.wait()
    (dead,) = flows_noted([tmp_path])
    assert dead.ended == dead.began
