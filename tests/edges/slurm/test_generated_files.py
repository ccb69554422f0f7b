"""The files of `clusterctl export slurm` with Debian's Slurm, its accounting in MariaDB included."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterator

import pytest

from lab.tests.lab_kit import eventually
from tests.edges.slurm.cluster import SET_UP
from tests.edges.slurm.site_cluster import SiteCluster, missing_here, running_site_cluster

pytestmark = pytest.mark.timeout(600)
NODES = ("node001", "node002", "node005", "node006")


@pytest.fixture(scope="module")
def west() -> Iterator[SiteCluster]:
    """Two nodes of each unit, all idle."""
    if lacking := missing_here():
        if SET_UP.exists():
            pytest.fail(f"set-up ran, but {', '.join(lacking)} is not installed: run make setup again")
        pytest.skip(f"{', '.join(lacking)} is not installed: run make setup")
    if os.geteuid() != 0:
        pytest.skip("slurmd needs root")
    with running_site_cluster(NODES) as found:
        yield found


def ask(west: SiteCluster, *argv: str) -> str:
    done = subprocess.run(argv, env=west.environment, capture_output=True, text=True, timeout=120, check=True)
    return done.stdout


def test_slurm_has_the_nodes_as_they_were_written(west: SiteCluster) -> None:
    """GPUs, memory, features and the tree of switches, as slurmctld itself reports them; no line was refused."""
    shown = ask(west, "scontrol", "show", "node", "node005")
    assert "Gres=gpu:h100:8" in shown
    assert "RealMemory=1992294" in shown
    assert "ActiveFeatures=dell-xe9680-h100,rack_A01,gold,unit2" in shown
    topology = ask(west, "scontrol", "show", "topology")
    assert re.search(r"SwitchName=unit1 Level=0 LinkSpeed=1 Nodes=node\[001-002\]", topology)
    assert re.search(
        r"SwitchName=fabric Level=1 LinkSpeed=1 Nodes=node\[001-002,005-006\] Switches=unit1,unit2", topology
    )
    logged = (west.folder / "slurmctld.log").read_text().splitlines()
    assert [
        line for line in logged if re.search(r"pars|invalid|topology.*(error|warning)|fatal", line, re.IGNORECASE)
    ] == [line for line in logged if "MailProg" in line]


def test_a_job_of_two_nodes_stays_on_one_leaf(west: SiteCluster) -> None:
    """With node001 drained the two others of a unit are taken, and never one of each."""
    west.update("node001", "State=DRAIN", "Reason=test")
    try:
        listed = ask(west, "srun", "--nodes=2", "--switches=1", "sh", "-c", "echo $SLURM_JOB_NODELIST")
        assert set(listed.split()) == {"node[005-006]"}
    finally:
        west.update("node001", "State=RESUME")


def test_jobs_are_in_the_accounting(west: SiteCluster) -> None:
    """Slurm sends them to slurmdbd, and slurmdbd writes them to MariaDB."""
    job = ask(west, "srun", "--job-name=kept", "--nodes=1", "sh", "-c", "echo $SLURM_JOB_ID").strip()

    def known() -> bool:
        return "kept|COMPLETED|" in ask(west, "sacct", "-X", "-n", "-P", "-j", job, "-o", "jobname,state,alloctres")

    assert eventually(known)
