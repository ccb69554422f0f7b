"""A rolling change on lab hosts that are nodes of a real Slurm: real Ansible, real drains, a job that runs to its end."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from lab.tests.lab_kit import RunningLab, clusterctl, needs_lab, running_lab
from tests.edges.slurm.cluster import SlurmCluster, missing, running_slurm

pytestmark = [pytest.mark.lab, pytest.mark.soak, needs_lab, pytest.mark.timeout(1200)]

NODES = ("node001", "node002", "node003")
PLAN = """\
name: exporters
reason: a second port for the exporters
change:
  variables: {node_exporter_extra_listen_addresses: ["127.0.0.1:9101"]}
waves: {canary: 2, by: nodes, size: 1}
suite: nightly
"""


@pytest.fixture
def rig(tmp_path: Path) -> Iterator[tuple[RunningLab, SlurmCluster]]:
    """Three gold nodes, all of them idle in Slurm."""
    if missing():
        pytest.skip("Slurm is not installed")
    with running_slurm(NODES) as slurm, running_lab("maintain", "10.151.0.0/16", tmp_path, "--hosts", "3") as lab:
        before = os.environ.get("SLURM_CONF")
        os.environ["SLURM_CONF"] = slurm.environment["SLURM_CONF"]
        with (lab.site / "site.yml").open("a") as file:
            file.write("\nscheduler: {kind: slurm}\n")
        done = clusterctl("bootstrap", "--yes", "--site", str(lab.site), timeout_s=900)
        assert done.returncode == 0, done.stdout + done.stderr
        yield lab, slurm
        os.environ.pop("SLURM_CONF")
        if before is not None:
            os.environ["SLURM_CONF"] = before


def test_one_variable_is_changed_on_the_pool_and_no_job_is_killed(rig: tuple[RunningLab, SlurmCluster]) -> None:
    """The job on the last node ends by itself with status 0; then that node is changed, too, and all have jobs again."""
    lab, slurm = rig
    plan = lab.site / "plan.yml"
    plan.write_text(PLAN)
    srun = ["srun", "-w", "node003", "sleep", "20"]
    with subprocess.Popen(srun, env=slurm.environment, stderr=subprocess.DEVNULL) as job:
        slurm.wait_for({"node003": "allocated"})
        done = clusterctl("maintain", str(plan), "--yes", "--site", str(lab.site), timeout_s=900)
        assert job.wait(120) == 0
    assert done.returncode == 0, done.stdout + done.stderr
    status = clusterctl("maintain", "status", "--site", str(lab.site)).stdout
    assert "done: 3 of 3 nodes done" in status
    slurm.wait_for(dict.fromkeys(NODES, "idle"))
