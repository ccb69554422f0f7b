"""Gold as a feature of a real Slurm's nodes."""

from __future__ import annotations

import subprocess

import pytest

from clusterctl.edges.scheduler import SlurmScheduler
from clusterctl.edges.scheduler.slurm import publish_feature
from clusterctl.fleet.finding import Origin
from clusterctl.operations.gold_pool import Feature
from clusterctl.ports import Deadline
from tests.edges.slurm.cluster import SlurmCluster
from tests.steps.fakes import FixedClock


def scheduler() -> SlurmScheduler:
    return SlurmScheduler(FixedClock(), Origin.SIMULATED)


def soon() -> Deadline:
    return Deadline.after(100)


def test_gold_nodes_have_the_feature_and_no_others(slurm: SlurmCluster) -> None:
    """Other features stay; nodes that are not the site's are not touched; unknown nodes are reported."""
    slurm.update("c1", "AvailableFeatures=h100", "ActiveFeatures=h100")
    slurm.update("c2", "AvailableFeatures=gold,h100", "ActiveFeatures=gold,h100")
    slurm.update("c3", "AvailableFeatures=gold", "ActiveFeatures=gold")
    assert publish_feature(scheduler(), "gold", ["c1", "c2", "c9"], ["c1", "c9"], soon()) == ("c9",)
    assert scheduler().features(soon()) == {"c1": ("h100", "gold"), "c2": ("h100",), "c3": ("gold",)}


def test_jobs_may_ask_for_it(slurm: SlurmCluster) -> None:
    """A job that wants gold runs there; on a cluster without gold it is refused."""
    publish_feature(scheduler(), "gold", slurm.nodes, ["c2"], soon())
    argv = ["srun", "--constraint=gold", "sh", "-c", "echo $SLURMD_NODENAME"]
    where = subprocess.run(argv, env=slurm.environment, capture_output=True, text=True, check=True, timeout=600)
    assert where.stdout.strip() == "c2"
    publish_feature(scheduler(), "gold", slurm.nodes, [], soon())
    refused = subprocess.run(argv, env=slurm.environment, capture_output=True, text=True, check=False, timeout=600)
    assert refused.returncode != 0


def test_a_missing_slurm_is_reported_and_stops_no_node(caplog: pytest.LogCaptureFixture) -> None:
    """An operator's hold is written down all the same."""
    slurm = SlurmScheduler(FixedClock(), Origin.SIMULATED, ssh="slurm.invalid")
    Feature(slurm, "gold", ("c1",)).publish({"c1": "192.0.2.1"})
    assert "Slurm's feature gold is not up to date" in caplog.text
