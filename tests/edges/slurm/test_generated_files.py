"""The files of `clusterctl export slurm` with Debian's Slurm, its accounting in MariaDB included."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterator

import pytest

from clusterctl.edges.scheduler import SlurmJobs
from clusterctl.ports import Deadline
from lab.tests.lab_kit import eventually
from tests.edges.slurm.cluster import SET_UP
from tests.edges.slurm.node_programs import write_node_file
from tests.edges.slurm.site_cluster import SiteCluster, missing_here, running_site_cluster

pytestmark = [pytest.mark.lab, pytest.mark.timeout(3600)]  # daemons with time limits
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
    done = subprocess.run(argv, env=west.environment, capture_output=True, text=True, timeout=600, check=True)
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


def test_a_job_is_read_from_the_accounting(west: SiteCluster) -> None:
    """As `job why JOBID` does once scontrol has forgotten it: nodes, user, exit code and times with their zone."""
    script = west.folder / "fails.sh"
    script.write_text("#!/bin/sh\nsleep 5\nexit 3\n")
    argv = ("sbatch", "--parsable", "--nodes=2", "--job-name=a|b", f"--output={west.folder}/%j.out", str(script))
    job = ask(west, *argv).strip()
    before = os.environ.get("SLURM_CONF")
    os.environ["SLURM_CONF"] = west.environment["SLURM_CONF"]
    try:
        jobs = SlurmJobs()

        def kept() -> bool:
            return [one.state for one in jobs._accounted(job, Deadline.after(60))] == ["FAILED"]

        assert eventually(kept)
        (found,) = jobs._accounted(job, Deadline.after(60))
        shown = jobs.job(job, Deadline.after(60))
    finally:
        if before is None:
            del os.environ["SLURM_CONF"]
        else:
            os.environ["SLURM_CONF"] = before
    assert (found.job, found.uid, found.gid, found.exit_code) == (job, 0, 0, 3)
    assert found.node_list.startswith("node")  # a node that ended first may be missing there
    assert (found.submitted, found.started, found.ended) == (shown.submitted, shown.started, shown.ended)


def extra(west: SiteCluster, node: str) -> str:
    found = re.search(r"\bExtra=(\S+)", ask(west, "scontrol", "--oneliner", "show", "node", node))
    return found[1] if found else ""


def test_a_prolog_drains_a_bad_node_and_its_job_runs_elsewhere(west: SiteCluster) -> None:
    """The job is neither held nor lost; a second bad node is one too many for the brake, and stays in work."""
    write_node_file(west.folder, west.nodes, bad=("node001", "node005"))
    for node in ("node002", "node005", "node006"):
        west.update(node, "State=DRAIN", "Reason=test")
    job = ask(west, "sbatch", "--parsable", "--nodes=1", "--output=/dev/null", "--wrap=true").strip()
    west.wait_for({"node001": "drained"})
    assert re.fullmatch(r"clusterctl:disk_space:\d{8}T\d{6}Z", west.reasons()["node001"].strip())
    west.update("node006", "State=RESUME")
    pending = "JobState=PENDING Reason=BeginTime"
    assert eventually(lambda: pending in ask(west, "scontrol", "--oneliner", "show", "job", job))
    ask(west, "scontrol", "update", f"JobId={job}", "StartTime=now")  # Slurm waits two minutes by itself

    def ran() -> bool:
        return f"{job}|COMPLETED|node006" in ask(
            west, "sacct", "-X", "-n", "-P", "-j", job, "-o", "jobid,state,nodelist"
        )

    assert eventually(ran)
    west.update("node005", "State=RESUME")
    west.wait_for({"node005": "idle"})
    assert ask(west, "srun", "-w", "node005", "sh", "-c", "echo ran").strip() == "ran"
    assert extra(west, "node005").startswith("clusterctl:disk_space:")
    west.wait_for({"node001": "drained", "node005": "idle"})
    assert west.reasons()["node002"].strip() == "test"


def test_of_all_nodes_with_a_bad_check_one_is_drained_at_most(west: SiteCluster) -> None:
    """All health checks at the same time, as slurmd starts them: one of four nodes may be drained, none is undrained."""
    west.reset()
    for node in west.nodes:
        west.update(node, "Extra=")
    write_node_file(west.folder, west.nodes, bad=west.nodes)
    environment = {name: {**west.environment, "SLURMD_NODENAME": name} for name in west.nodes}
    running = [subprocess.Popen([str(west.folder / "clusterctl-health")], env=environment[name]) for name in west.nodes]
    assert [one.wait(600) for one in running] == [0, 0, 0, 0]
    drained = [node for node, state in west.states().items() if state.startswith("drain")]
    assert len(drained) <= 1
    assert all(extra(west, node).startswith("clusterctl:disk_space:") for node in west.nodes)
    assert (
        'clusterctl_drain_held{check="disk_space",by="brake"} 1' in (west.folder / "clusterctl_drain.prom").read_text()
    )
