"""`clusterctl cable name`: switches that all have their factory's name get the plan's, by their cables."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from clusterctl.fleet.fabric.topology import DeviceKind, Fabric
from clusterctl_cli.main import run
from tests.cli.site_of_three import write
from tests.formats.infiniband import printers
from tests.ufm.watch_world import fat_tree, plan_csv

TREE = fat_tree(4, 2, 3)
FACTORY = "MF0;switch-b2a4e8:MQM9700/U1"


def factory_named() -> Fabric:
    devices = {
        guid: replace(one, description=FACTORY) if one.kind is DeviceKind.SWITCH else one
        for guid, one in TREE.devices.items()
    }
    return Fabric(devices, TREE.links)


@pytest.fixture
def site(tmp_path: Path) -> Path:
    made = write(tmp_path)
    (made / "wiring.csv").write_text(plan_csv(TREE))
    (tmp_path / "fabric").write_text(printers.ibnetdiscover(factory_named()))
    return made


def test_every_switch_has_its_name(site: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The file has one line for each switch, as OpenSM reads it; no switch is taken for another one."""
    file = site.parent / "node-name-map"
    code = run(["cable", "name", "--site", str(site), "--fabric", str(site.parent / "fabric"), "--write", str(file)])
    assert code == 0, capsys.readouterr().err
    lines = file.read_text().splitlines()[1:]
    switches = {guid: one for guid, one in TREE.devices.items() if one.kind is DeviceKind.SWITCH}
    leaves = [f'0x{guid} "{one.description}"' for guid, one in switches.items() if one.description.startswith("leaf")]
    assert set(leaves) <= set(lines)
    assert len(lines) == len(switches)


def test_what_the_plan_does_not_have(site: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A switch that is in no plan gets no name, with exit code 1; without any name it is wrong usage."""
    (site / "wiring.csv").write_text("\n".join(line for line in plan_csv(TREE).splitlines() if "spine-2" not in line))
    args = ["cable", "name", "--site", str(site), "--fabric", str(site.parent / "fabric")]
    assert run([*args, "--json"]) == 1
    printed = capsys.readouterr()
    assert len(json.loads(printed.out)["unknown"]) == 1
    assert "not identified: 0x000000000000c002" in printed.err
    (site / "wiring.csv").write_text("source_device,source_port,destination_device,destination_port\nx,1,y,1\n")
    assert run(args) == 2
