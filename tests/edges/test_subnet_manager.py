"""The activity of a real OpenSM over a simulated fabric of 512 adapters and 24 switches."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

import pytest

from clusterctl.cabling.generate.fat_tree import PortNaming, generate
from clusterctl.cabling.generate.racks import RackLayout
from clusterctl.cabling.generate.shape import FabricSize, shape_of
from clusterctl.edges.infiniband import SminfoReader
from clusterctl.fleet.errors import EdgeError
from clusterctl.ports import Deadline, MasterActivity
from clusterctl.steps.executor.pace import LOOK_S, SubnetManagerPace
from tests.cabling.generate.subnet import MISSING, managed

pytestmark = [pytest.mark.skipif(MISSING, reason="ibsim-utils or opensm is missing"), pytest.mark.timeout(300)]


def test_a_heavy_sweep_slows_reboots_down(tmp_path: Path) -> None:
    """The sweep after a change sends thousands of packets, the light ones after it tens."""
    size = FabricSize(64, 8, 64, 2)
    adapters = tuple(f"mlx5_{number}" for number in range(size.rails))
    plan = generate(shape_of(size), PortNaming(adapters, twin_cages=False), RackLayout())
    with managed(plan, size.radix, tmp_path) as (opensm, environment):
        reader = SminfoReader(_command(environment))
        last = _quiet(reader)
        now, changes = 0.0, list[str]()
        pace = SubnetManagerPace(reader, 500, changes.append, now=lambda: now)

        def looked() -> int:
            nonlocal now
            now += LOOK_S
            return pace(64)

        assert [looked(), looked()] == [16, 64]
        opensm.send_signal(signal.SIGHUP)
        last = _quiet(reader, last.packets + 3000)
        assert looked() == 16
        assert looked() == 64
        assert last.guid == reader.activity(Deadline.after(60)).guid
    assert [one.partition(":")[0] for one in changes] == [
        "fewer hosts reboot at once",
        "the subnet manager is idle again",
    ]


def _command(environment: dict[str, str]) -> tuple[str, ...]:
    """Return `sminfo` in this environment, as the argument list of `fabric.sminfo`."""
    own = [f"{name}={value}" for name, value in environment.items() if os.environ.get(name) != value]
    return ("env", *own, "sminfo")


def _quiet(reader: SminfoReader, more_than: int = 0) -> MasterActivity:
    """Wait until it is master and sends little; return its activity."""
    last = None
    while True:
        try:
            seen = reader.activity(Deadline.after(60))
        except EdgeError:
            seen = None
        if seen and last and more_than < seen.packets < last.packets + 100:
            return seen
        last = seen
        time.sleep(0.3)
