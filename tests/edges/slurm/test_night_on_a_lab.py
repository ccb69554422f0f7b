"""Nights and a repair on lab hosts that are nodes of a real Slurm."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from lab.tests.lab_kit import RunningLab, clusterctl, needs_lab, running_lab
from tests.edges.slurm.cluster import SlurmCluster, missing, running_slurm

pytestmark = [pytest.mark.lab, pytest.mark.soak, needs_lab, pytest.mark.timeout(3600)]

NODES = ("node001", "node002", "node003")
SETTINGS = """
scheduler: {kind: slurm, feature: gold}
publish: {inventory: gold.yml}
nightly: {window: "00:00-23:59", percent: 100, node_minutes: 15}
"""


@dataclass(frozen=True)
class Rig:
    lab: RunningLab
    slurm: SlurmCluster

    def clusterctl(self, *words: str) -> subprocess.CompletedProcess[str]:
        return clusterctl(*words, "--site", str(self.lab.site), timeout_s=1200)

    def gold(self) -> list[str]:
        return [node["name"] for node in json.loads((self.lab.site / "gold.json").read_text())["gold"]]


@pytest.fixture(scope="module")
def rig(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Rig]:
    """Three gold nodes, all of them idle in Slurm."""
    if missing():
        pytest.skip("Slurm is not installed")
    folder: Path = tmp_path_factory.mktemp("night")
    with running_slurm(NODES) as slurm, running_lab("night", "10.149.0.0/16", folder, "--hosts", "3") as lab:
        before = os.environ.get("SLURM_CONF")
        os.environ["SLURM_CONF"] = slurm.environment["SLURM_CONF"]
        site = lab.site / "site.yml"
        site.write_text(site.read_text() + SETTINGS)
        found = Rig(lab, slurm)
        done = found.clusterctl("bootstrap", "--yes")
        assert done.returncode == 0, done.stdout + done.stderr
        yield found
        os.environ.pop("SLURM_CONF")
        if before is not None:
            os.environ["SLURM_CONF"] = before


def test_a_sound_pool_is_one_line(rig: Rig) -> None:
    """A node at work is left alone; the others are tested, gold again, and have work again."""
    rig.slurm.work_on("node003")
    done = rig.clusterctl("burnin", "nightly", "--yes")
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.startswith("nightly: 2 nodes tested, 2 gold again; ")
    assert len(done.stdout.splitlines()) == 1
    assert rig.gold() == list(NODES)
    rig.slurm.wait_for({"node001": "idle", "node002": "idle", "node003": "allocated"})
    rig.slurm.end_work()
    rig.slurm.wait_for(dict.fromkeys(NODES, "idle"))


def test_a_node_that_fails_stays_drained_until_its_repair_is_proven(rig: Rig) -> None:
    """Out of the pool, out of Slurm's gold, with the check in its drain's reason; revalidated, all of it is back."""
    injected = clusterctl("lab", "inject", "--name", rig.lab.name, "row-remap-failure", "node002:gpu1")
    assert injected.returncode == 0, injected.stderr
    done = rig.clusterctl("burnin", "nightly", "--yes")
    assert done.returncode == 1
    assert "node002" in done.stdout
    assert rig.gold() == ["node001", "node003"]
    rig.slurm.wait_for({"node001": "idle", "node002": "drained", "node003": "idle"})
    assert rig.slurm.reasons()["node002"].startswith("clusterctl:gpu_row_remap:")
    healed = clusterctl("lab", "heal", "--name", rig.lab.name)
    assert healed.returncode == 0, healed.stderr
    done = rig.clusterctl("revalidate", "node002", "--repaired", "gpu1", "--yes")
    assert done.returncode == 0, done.stdout + done.stderr
    assert rig.gold() == list(NODES)
    rig.slurm.wait_for(dict.fromkeys(NODES, "idle"))
