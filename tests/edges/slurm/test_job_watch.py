"""Supervised runs on a real Slurm: restarted without the suspect, resumed after a kill, ended where they must be."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from clusterctl.edges.scheduler import SlurmJobs
from clusterctl.fleet.blame import Failure, Layer
from clusterctl.fleet.event import Kind, Stream
from clusterctl.fleet.job_policy import JobPolicy
from clusterctl.jobs.supervision import Outcome, SupervisedRun
from clusterctl.operations import job_run, job_watch
from clusterctl.operations.context import new_run_id
from clusterctl.operations.job_checklist import checklist
from clusterctl.operations.job_manifest import ManifestInputs
from clusterctl.operations.job_run import JobRunRequest
from clusterctl.operations.job_runs import diff, named
from clusterctl.operations.job_watch import StopRequest, WatchRequest
from clusterctl.operations.operation import Control
from clusterctl.ports import Deadline
from clusterctl.ports.jobs import Submission
from tests.edges.slurm.cluster import SlurmCluster
from tests.edges.slurm.job_site import LOST_GPU, JobSite, LocalAdapters, eventually, job_site

STEP = "iteration {step:8}/ 500 | consumed samples: 1 | elapsed time per iteration (ms): 100 |"
RANK = """\
import datetime, os, sys, time
rank, host, attempt = int(os.environ["SLURM_PROCID"]), os.environ["SLURMD_NODENAME"], os.environ["CLUSTERCTL_ATTEMPT"]
for step in range(11 if attempt == "2" else 1, 14):
    print(f"STEP", flush=True)
    if rank == 0 and step == 10:
        print(f"saving checkpoint at iteration {step:7d} to /x", flush=True)
        print(f"successfully saved checkpoint from iteration {step:7d} to /x", flush=True)
stamp = datetime.datetime.now(datetime.timezone.utc)
BODY
"""
LOSES_ITS_GPU = """
if attempt == "1" and rank == 1:
    with open(f"HOSTS/{host}/kernel.log", "a") as log:
        log.write(f"{stamp:%Y-%m-%dT%H:%M:%S.%f}+00:00 {host} kernel: LOST\\n")
    sys.exit(7)
if attempt == "1":
    print(f"[rank{rank}]: ncclRemoteError: A call failed possibly due to a network error", file=sys.stderr)
    time.sleep(1)
    sys.exit(1)
"""
HANGS = "time.sleep(600)"
RAISES = "raise ValueError('shapes differ')"
QUICK = JobPolicy(retries=2, backoff_s=1, hang_s=3, setup_s=120)


@pytest.fixture
def site(slurm: SlurmCluster, tmp_path: Path) -> Iterator[JobSite]:
    with job_site(tmp_path) as found:
        yield found


def request(site: JobSite, body: str, policy: JobPolicy = QUICK) -> JobRunRequest:
    rank, script = site.folder / "rank.py", site.folder / "train.sh"
    text = RANK.replace("BODY", body).replace("STEP", STEP).replace("HOSTS", str(site.hosts.folder))
    rank.write_text(text.replace("LOST", LOST_GPU))
    script.write_text(f"#!/bin/bash\nsrun -K1 -l /usr/bin/python3 {rank}\n")
    return JobRunRequest(
        script=script,
        folder=site.folder / "logs",
        nodes=2,
        spares=1,
        policy=policy,
        inputs=ManifestInputs(code=site.folder, seed="7"),
    )


def followed(site: JobSite, run: str) -> SupervisedRun:
    context = replace(site.context, run=new_run_id())
    return job_watch.watch(context, WatchRequest(run=run, poll_s=0.3), Control())


def test_a_lost_gpu_costs_one_restart(slurm: SlurmCluster, site: JobSite) -> None:
    """The run completes on the other nodes; the suspect is drained; the manifests show what differs."""
    ordered = job_run.run(site.context, request(site, LOSES_ITS_GPU), Control())
    found = followed(site, ordered.id)
    assert found.outcome is Outcome.COMPLETED, found.reason
    first, second = found.attempts
    assert (first.nodes, second.nodes, second.avoided) == (("c1", "c2"), ("c1", "c3"), ("c2",))
    assert first.ended is not None
    assert second.ended is not None
    assert (first.ended.layer, first.ended.hosts, first.ended.state) == (Layer.HARDWARE, ("c2",), "FAILED")
    assert (first.ended.first, first.ended.last, first.ended.saved) == (1, 13, 10)
    assert (second.ended.first, second.ended.last, second.ended.state) == (11, 13, "COMPLETED")
    assert slurm.states()["c2"] == "drained"
    assert slurm.reasons()["c2"] == f"clusterctl:job:{found.id}"
    changed = {one.field: (one.first, one.second) for one in diff(site.context, first.job, second.job)}
    assert changed["nodes"] == ("c1, c2", "c1, c3")
    answers = checklist(site.context, first.job)
    assert len(answers) == 8
    assert answers[-1].answer.startswith("hardware, proven")


@dataclass(frozen=True, slots=True)
class KilledAfterSubmission(SlurmJobs):
    """The process dies once the scheduler has taken the job, before that is recorded."""

    def submit(self, submission: Submission, deadline: Deadline) -> str:
        SlurmJobs.submit(self, submission, deadline)
        raise KeyboardInterrupt


class KilledAdapters(LocalAdapters):
    @property
    def jobs(self) -> KilledAfterSubmission:
        return KilledAfterSubmission()


def test_a_killed_process_submits_nothing_twice(slurm: SlurmCluster, site: JobSite) -> None:
    """The watcher finds the submission by its comment and goes on with it."""
    killed = replace(site.context, connect=lambda of, access: KilledAdapters(of, access, site.hosts))
    with pytest.raises(KeyboardInterrupt):
        job_run.run(killed, request(site, "pass"), Control())
    (event,) = site.context.journal.latest(Stream.JOB, Kind.JOB_RUN_ORDERED)
    assert named(site.context, event.subject).jobs == ()
    found = followed(site, event.subject)
    assert found.outcome is Outcome.COMPLETED, found.reason
    assert len(found.attempts) == 1
    argv = ["squeue", "--states=all", "-h", "-o", "%k"]
    shown = subprocess.run(argv, env=slurm.environment, check=True, capture_output=True, text=True, timeout=60).stdout
    assert [line.strip() for line in shown.splitlines()].count(found.attempts[0].comment) == 1


def test_an_error_of_the_program_asks(slurm: SlurmCluster, site: JobSite) -> None:
    """No restart, no drain: the next attempt would fail in the same way."""
    ordered = job_run.run(site.context, request(site, RAISES), Control())
    found = followed(site, ordered.id)
    assert found.outcome is Outcome.ASKS
    assert "ValueError" in found.reason
    assert len(found.attempts) == 1
    assert set(slurm.states().values()) == {"idle"}


def test_a_hang_is_cancelled_and_asked_about(slurm: SlurmCluster, site: JobSite) -> None:
    """No step for the policy's time: stacks are taken while the ranks run, then the job ends."""
    ordered = job_run.run(site.context, request(site, HANGS, replace(QUICK, retries=0)), Control())
    found = followed(site, ordered.id)
    assert found.outcome is Outcome.ASKS
    (attempt,) = found.attempts
    assert attempt.ended is not None
    assert (attempt.ended.failure, attempt.ended.state) == (Failure.HANG, "CANCELLED")
    stacks = list((site.folder / "site/state/jobs" / attempt.job).rglob("pyspy_rank_*.json"))
    assert {file.name for file in stacks} == {"pyspy_rank_0.json", "pyspy_rank_1.json"}
    slurm.wait_for(dict.fromkeys(slurm.nodes, "idle"))


def test_a_stop_ends_the_run(slurm: SlurmCluster, site: JobSite) -> None:
    ordered = job_run.run(site.context, request(site, HANGS, replace(QUICK, hang_s=600)), Control())
    job = ordered.jobs[0]
    eventually(lambda: SlurmJobs().job(job, Deadline.after(60)).state == "RUNNING")
    context = replace(site.context, run=new_run_id())
    found = job_watch.stop(context, StopRequest(run=job, reason="enough"), Control())
    assert (found.outcome, found.reason) == (Outcome.STOPPED, "enough")
    assert SlurmJobs().job(job, Deadline.after(60)).state == "CANCELLED"
