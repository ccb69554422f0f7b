"""A real Slurm closes a node between the choice of nodes and the job's start: the run goes on with other nodes, or asks.

Slurm takes such a submission, and lets it wait for the node without end.
"""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from clusterctl.edges.scheduler import SlurmJobs
from clusterctl.fleet.blame import Layer
from clusterctl.jobs.supervision import JobOutcome, SupervisedRun
from clusterctl.operations import job_run
from clusterctl.operations.job_start import waits_for_nodes
from clusterctl.operations.operation import Control
from clusterctl.ports import Deadline
from clusterctl.ports.jobs import Submission
from tests.edges.slurm.cluster import SlurmCluster
from tests.edges.slurm.job_site import JobSite, eventually, job_site
from tests.edges.slurm.test_job_watch import KilledAdapters, followed, request
from tests.edges.slurm.test_user_runs import ordered_by_user

pytestmark = [pytest.mark.lab, pytest.mark.soak, pytest.mark.timeout(3600)]  # daemons with time limits


@pytest.fixture
def site(slurm: SlurmCluster, tmp_path: Path) -> Iterator[JobSite]:
    with job_site(tmp_path) as found:
        yield found


@dataclass(frozen=True, slots=True)
class NodesClose(SlurmJobs):
    """An administrator acts once nodes are chosen, right before the submission."""

    act: Callable[[], None] = lambda: None

    def submit(self, submission: Submission, deadline: Deadline) -> str:
        self.act()
        return SlurmJobs.submit(self, submission, deadline)


@dataclass(frozen=True, slots=True)
class KilledAtCancel(SlurmJobs):
    """The process dies when the end of a job is intended, before the scheduler is asked."""

    def cancel(self, job: str, deadline: Deadline) -> None:
        raise KeyboardInterrupt


def with_jobs(site: JobSite, jobs: SlurmJobs) -> JobSite:
    context = replace(site.context, connect=lambda of, access: KilledAdapters(of, access, site.hosts, jobs))
    return replace(site, context=context)


def ordered(site: JobSite, act: Callable[[], None]) -> SupervisedRun:
    """Order a run of two nodes, c1 and c2; the act comes between their choice and the submission."""
    wish = replace(request(site, "pass"), spares=0)
    return job_run.run(with_jobs(site, NodesClose(act=act)).context, wish, Control())


def submissions(slurm: SlurmCluster, comment: str) -> int:
    argv = ["squeue", "--states=all", "-h", "-o", "%k"]
    shown = subprocess.run(argv, env=slurm.environment, check=True, capture_output=True, text=True, timeout=60).stdout
    return [line.strip() for line in shown.splitlines()].count(comment)


@dataclass(frozen=True, slots=True)
class ClosesAtRelease(SlurmJobs):
    """An administrator acts once, right before a held job gets its nodes."""

    act: Callable[[], None] = lambda: None
    acted: list[str] = field(default_factory=list)

    def assign(self, job: str, nodes: Sequence[str], deadline: Deadline) -> None:
        if not self.acted:
            self.acted.append(job)
            self.act()
        SlurmJobs.assign(self, job, nodes, deadline)


def waits(job: str) -> bool:
    return waits_for_nodes(SlurmJobs().job(job, Deadline.after(60)))


@pytest.mark.parametrize("state", ["DRAIN", "DOWN"])
def test_a_closed_node_costs_one_attempt(slurm: SlurmCluster, site: JobSite, state: str) -> None:
    """The attempt never began; it is cancelled, and the next one completes on the other nodes. The node is not blamed."""
    run = ordered(site, lambda: slurm.update("c2", f"State={state}", "Reason=disk"))
    eventually(lambda: SlurmJobs().job(run.jobs[0], Deadline.after(60)).reason == "ReqNodeNotAvail")
    found = followed(site, run.id)
    assert found.outcome is JobOutcome.COMPLETED, found.reason
    first, second = found.attempts
    assert (first.nodes, second.nodes, second.avoided) == (("c1", "c2"), ("c1", "c3"), ())
    assert first.ended is not None
    assert (first.ended.state, first.ended.layer, first.ended.hosts) == ("CANCELLED", Layer.SCHEDULER, ("c2",))
    assert first.ended.cause.startswith("it cannot begin: c2 is d")
    assert slurm.reasons()["c2"] == "disk"


def test_a_node_that_drains_with_a_job_of_another_user(slurm: SlurmCluster, site: JobSite) -> None:
    """It runs a job and is to be drained: no further job begins on it, so that the attempt is withdrawn, too."""

    def act() -> None:
        slurm.work_on("c2")
        slurm.update("c2", "State=DRAIN", "Reason=disk")

    found = followed(site, ordered(site, act).id)
    assert (found.outcome, found.attempts[-1].nodes) == (JobOutcome.COMPLETED, ("c1", "c3")), found.reason


def test_a_busy_node_is_waited_for(slurm: SlurmCluster, site: JobSite) -> None:
    """Another job was faster: the attempt keeps its place in the queue, and begins once that job ends."""
    run = ordered(site, lambda: slurm.work_on("c2", 20))
    assert waits(run.jobs[0])
    found = followed(site, run.id)
    assert (found.outcome, len(found.attempts)) == (JobOutcome.COMPLETED, 1), found.reason


def test_a_held_job_is_left_to_its_holder(slurm: SlurmCluster, site: JobSite) -> None:
    """Slurm names another reason, or a priority of 0: closed nodes are not what it waits for."""
    run = ordered(site, lambda: slurm.update("c2", "State=DRAIN", "Reason=disk"))
    (job,) = run.jobs
    eventually(lambda: waits(job))
    subprocess.run(["scontrol", "hold", job], env=slurm.environment, check=True, timeout=60)
    eventually(lambda: not waits(job))
    held = SlurmJobs().job(job, Deadline.after(60))
    assert (held.state, held.held) == ("PENDING", True)
    subprocess.run(["scontrol", "release", job], env=slurm.environment, check=True, timeout=60)
    assert followed(site, run.id).outcome is JobOutcome.COMPLETED


def test_a_killed_watcher_submits_once(slurm: SlurmCluster, site: JobSite) -> None:
    """It died between the order to end the job and scancel: the next one cancels it, and submits each attempt once."""
    run = ordered(site, lambda: slurm.update("c2", "State=DRAIN", "Reason=disk"))
    with pytest.raises(KeyboardInterrupt):
        followed(with_jobs(site, KilledAtCancel()), run.id)
    assert waits(run.jobs[0])
    found = followed(site, run.id)
    assert found.outcome is JobOutcome.COMPLETED, found.reason
    assert [submissions(slurm, one.comment) for one in found.attempts] == [1, 1]


def test_with_too_few_nodes_the_run_asks(slurm: SlurmCluster, site: JobSite) -> None:
    """Slurm gives a text in place of a code then: a partition with too few nodes. The states decide."""

    def act() -> None:
        for node in ("c2", "c3"):
            slurm.update(node, "State=DRAIN", "Reason=disk")

    run = ordered(site, act)
    found = followed(site, run.id)
    assert found.outcome is JobOutcome.ASKS
    assert found.reason == (
        "2 gold nodes are needed, work can begin on 1: c2 is drained (disk), c3 is drained (disk). "
        "Give nodes back to the scheduler, then order the run again"
    )
    assert len(found.attempts) == 1


def test_a_node_that_closes_before_a_held_job_gets_it(slurm: SlurmCluster, site: JobSite) -> None:
    """Slurm gives a held job a drained node, too: the second attempt of a user waits in vain, and the third completes."""
    found = ordered_by_user(site, "pass", lambda: slurm.update("c2", "State=DRAIN", "Reason=disk"))

    def act() -> None:
        slurm.update("c2", "State=RESUME")
        slurm.update("c3", "State=DRAIN", "Reason=disk")

    watched = followed(with_jobs(site, ClosesAtRelease(act=act)), found.id)
    assert watched.outcome is JobOutcome.COMPLETED, watched.reason
    assert [one.nodes for one in watched.attempts] == [("c1", "c2"), ("c1", "c3"), ("c1", "c2")]
