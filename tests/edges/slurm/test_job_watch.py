"""Supervised runs on a real Slurm: restarted without the suspect, resumed after a kill, ended where they must be."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from clusterctl.edges.scheduler import SlurmJobs
from clusterctl.edges.site import Site
from clusterctl.fleet.blame import Failure, Layer
from clusterctl.fleet.errors import UsageError
from clusterctl.fleet.event import Kind, Stream
from clusterctl.fleet.job_policy import JobPolicy
from clusterctl.fleet.node import Stage
from clusterctl.jobs.supervision import JobOutcome, SupervisedRun
from clusterctl.operations import job_run, job_watch
from clusterctl.operations.adapters import Access
from clusterctl.operations.context import new_run_id
from clusterctl.operations.job_checklist import checklist
from clusterctl.operations.job_inputs import JobRunRequest
from clusterctl.operations.job_runs import diff, named
from clusterctl.operations.job_watch import StopRequest, WatchRequest
from clusterctl.operations.operation import Control
from clusterctl.ports import Deadline
from clusterctl.ports.jobs import Submission
from clusterctl_cli.main import run
from tests.edges.slurm.cluster import SlurmCluster
from tests.edges.slurm.job_site import LOST_GPU, JobSite, LocalAdapters, LocalHosts, eventually, job_site

pytestmark = [pytest.mark.lab, pytest.mark.soak, pytest.mark.timeout(3600)]  # daemons with time limits

STEP = "iteration {step:8}/ 500 | consumed samples: 1 | elapsed time per iteration (ms): 100 |"
RANK = """\
import datetime, os, sys, time
from pathlib import Path
rank, host, attempt = int(os.environ["SLURM_PROCID"]), os.environ["SLURMD_NODENAME"], os.environ["CLUSTERCTL_ATTEMPT"]
logs = Path(os.environ["CLUSTERCTL_LOGS"])
def until(look):
    while not look():
        time.sleep(0.1)
(logs / f"ready-{rank}").touch()
until(lambda: len(list(logs.glob("ready-*"))) == 2)
for step in range(11 if attempt == "2" else 1, 14):
    print(f"STEP", flush=True)
    if rank == 0 and step == 10:
        print(f"saving checkpoint at iteration {step:7d} to /x", flush=True)
        print(f"successfully saved checkpoint from iteration {step:7d} to /x", flush=True)
stamp = datetime.datetime.now(datetime.timezone.utc)
BODY
"""
LOSES_ITS_GPU = """
seen = Path("SITE/state/jobs") / os.environ["SLURM_JOB_ID"] / "progress.json"
if attempt == "1" and rank == 1:
    until(lambda: seen.exists() and '"last": 13,' in seen.read_text() and '"saved": 10,' in seen.read_text())
    with open(f"HOSTS/{host}/kernel.log", "a") as log:
        log.write(f"{stamp:%Y-%m-%dT%H:%M:%S.%f}+00:00 {host} kernel: LOST\\n")
    sys.exit(7)
if attempt == "1":
    print(f"[rank{rank}]: ncclRemoteError: A call failed possibly due to a network error", file=sys.stderr)
    time.sleep(600)
"""
HANGS = "time.sleep(600)"
RAISES = """
import traceback
try:
    raise ValueError("shapes differ")
except ValueError:
    traceback.print_exc()
shown = logs / f"slurm-{os.environ['SLURM_JOB_ID']}.out"
until(lambda: f"{rank}: ValueError" in shown.read_text())
sys.exit(1)
"""
"""It ends once its log holds the traceback: when another rank ends first, `srun -K1` drops what it has not written yet."""
QUICK = JobPolicy(retries=2, backoff_s=1, hang_s=300, setup_s=300)


@pytest.fixture
def site(slurm: SlurmCluster, tmp_path: Path) -> Iterator[JobSite]:
    with job_site(tmp_path) as found:
        yield found


def request(site: JobSite, body: str, policy: JobPolicy = QUICK) -> JobRunRequest:
    rank, script = site.folder / "rank.py", site.folder / "train.sh"
    text = RANK.replace("BODY", body).replace("STEP", STEP).replace("HOSTS", str(site.hosts.folder))
    text = text.replace("SITE", str(site.folder / "site"))
    rank.write_text(text.replace("LOST", LOST_GPU))
    script.write_text(f"#!/bin/bash\nsrun -K1 -l /usr/bin/python3 {rank}\n")
    return JobRunRequest(
        script=str(script),
        folder=str(site.folder / "logs"),
        nodes=2,
        spares=1,
        policy=policy,
        part={"seed": "7"},
    )


def followed(site: JobSite, run: str) -> SupervisedRun:
    context = replace(site.context, run=new_run_id())
    return job_watch.watch(context, WatchRequest(run=run, poll_s=0.3), Control())


def test_a_lost_gpu_costs_one_restart(slurm: SlurmCluster, site: JobSite) -> None:
    """The run completes on the other nodes; the suspect is drained; the manifests show what differs."""
    ordered = job_run.run(site.context, request(site, LOSES_ITS_GPU, replace(QUICK, quarantine=True)), Control())
    eventually(lambda: slurm.states()["c3"] == "reserved")  # the spare
    found = followed(site, ordered.id)
    assert found.outcome is JobOutcome.COMPLETED, found.reason
    first, second = found.attempts
    assert (first.nodes, second.nodes, second.avoided) == (("c1", "c2"), ("c1", "c3"), ("c2",))
    assert first.ended is not None
    assert second.ended is not None
    assert (first.ended.layer, first.ended.hosts, first.ended.state) == (Layer.HARDWARE, ("c2",), "FAILED")
    assert (first.ended.first, first.ended.last, first.ended.saved) == (1, 13, 10)
    assert (second.ended.first, second.ended.last, second.ended.state) == (11, 13, "COMPLETED")
    assert slurm.states()["c2"] == "drained"
    (blamed,) = site.context.states(["c2"])
    assert (blamed.stage, blamed.cause.startswith(f"job {first.job} of {found.id}: ")) == (Stage.QUARANTINED, True)
    eventually(lambda: slurm.states()["c3"] == "idle")
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


@dataclass(frozen=True, slots=True)
class KilledBeforeSubmission(SlurmJobs):
    """The process dies when the submission is intended, before the scheduler is asked."""

    def submit(self, submission: Submission, deadline: Deadline) -> str:
        raise KeyboardInterrupt


class KilledAdapters(LocalAdapters):
    def __init__(self, site: Site, access: Access, hosts: LocalHosts, killed: SlurmJobs) -> None:
        super().__init__(site, access, hosts)
        self._killed = killed

    @property
    def jobs(self) -> SlurmJobs:
        return self._killed


@pytest.mark.parametrize("killed_jobs", [KilledBeforeSubmission(), KilledAfterSubmission()])
def test_a_killed_process_submits_once(slurm: SlurmCluster, site: JobSite, killed_jobs: SlurmJobs) -> None:
    """The watcher finds the submission by its comment and goes on with it; where there is none, it submits."""
    killed = replace(site.context, connect=lambda of, access: KilledAdapters(of, access, site.hosts, killed_jobs))
    with pytest.raises(KeyboardInterrupt):
        job_run.run(killed, request(site, "pass"), Control())
    (event,) = site.context.journal.latest(Stream.JOB, Kind.JOB_RUN_ORDERED)
    assert named(site.context, event.subject).jobs == ()
    found = followed(site, event.subject)
    assert found.outcome is JobOutcome.COMPLETED, found.reason
    assert len(found.attempts) == 1
    argv = ["squeue", "--states=all", "-h", "-o", "%k"]
    shown = subprocess.run(argv, env=slurm.environment, check=True, capture_output=True, text=True, timeout=60).stdout
    assert [line.strip() for line in shown.splitlines()].count(found.attempts[0].comment) == 1


def test_an_error_of_the_program_asks(slurm: SlurmCluster, site: JobSite) -> None:
    """No restart, no drain: the next attempt would fail in the same way."""
    ordered = job_run.run(site.context, request(site, RAISES), Control())
    found = followed(site, ordered.id)
    assert found.outcome is JobOutcome.ASKS
    assert "ValueError" in found.reason
    assert len(found.attempts) == 1
    assert set(slurm.states().values()) == {"idle"}


def test_a_hang_is_cancelled_and_asked_about(slurm: SlurmCluster, site: JobSite) -> None:
    """No step for the policy's time: stacks are taken while the ranks run, then the job ends."""
    ordered = job_run.run(site.context, request(site, HANGS, replace(QUICK, retries=0, hang_s=3)), Control())
    found = followed(site, ordered.id)
    assert found.outcome is JobOutcome.ASKS
    (attempt,) = found.attempts
    assert attempt.ended is not None
    assert (attempt.ended.failure, attempt.ended.state) == (Failure.HANG, "CANCELLED")
    stacks = list((site.folder / "site/state/jobs" / attempt.job).rglob("pyspy_rank_*.json"))
    assert {file.name for file in stacks} == {"pyspy_rank_0.json", "pyspy_rank_1.json"}
    slurm.wait_for(dict.fromkeys(slurm.nodes, "idle"))


DIES_WITH_ITS_NODE = """
if attempt == "1":
    time.sleep(600)
"""


def test_a_lost_node_is_left_out(slurm: SlurmCluster, site: JobSite) -> None:
    """Slurm takes the node down and ends the job; the next attempt runs without it."""
    ordered = job_run.run(site.context, request(site, DIES_WITH_ITS_NODE), Control())
    eventually(lambda: SlurmJobs().job(ordered.jobs[0], Deadline.after(60)).state == "RUNNING")
    slurm.update("c2", "State=DOWN", "Reason=died")
    found = followed(site, ordered.id)
    assert found.outcome is JobOutcome.COMPLETED, found.reason
    first, second = found.attempts
    assert first.ended is not None
    assert (first.ended.state, first.ended.layer, first.ended.hosts) == ("NODE_FAIL", Layer.HARDWARE, ("c2",))
    assert second.nodes == ("c1", "c3")
    assert slurm.reasons()["c2"] == "died"


def printed(site: JobSite, capsys: pytest.CaptureFixture[str], *words: str) -> dict[str, Any]:
    """The document of a command as its user types it, with exit code 0."""
    capsys.readouterr()
    code = run([*words, "--json", "--site", str(site.folder / "site")])
    out, err = capsys.readouterr()
    assert code == 0, err
    found = json.loads(out)
    assert isinstance(found, dict)
    return found


def test_a_stop_ends_the_run(slurm: SlurmCluster, site: JobSite, capsys: pytest.CaptureFixture[str]) -> None:
    """Ordered and listed by the commands; only one process acts on a run."""
    wish = request(site, HANGS)
    words = ("job", "run", "--yes", "--nodes", "2", "--env", "NCCL_DEBUG=WARN", "--hang-after", "10min")
    started = printed(site, capsys, *words, str(wish.script))
    job = started["attempts"][0]["job"]
    with job_run.alone(site.context, started["name"], Control()), pytest.raises(UsageError, match="another run"):
        followed(site, started["name"])
    eventually(lambda: SlurmJobs().job(job, Deadline.after(60)).state == "RUNNING")
    context = replace(site.context, run=new_run_id())
    found = job_watch.stop(context, StopRequest(run=job, reason="enough"), Control())
    assert (found.outcome, found.reason) == (JobOutcome.STOPPED, "enough")
    assert SlurmJobs().job(job, Deadline.after(60)).state == "CANCELLED"
    (row,) = printed(site, capsys, "job", "list", "--all")["runs"]
    assert (row["name"], row["state"], row["attempts"][0]["job"]) == (started["name"], "stopped", job)
    report = printed(site, capsys, "report", "--downtime")
    (times,) = report["runs"][0]["attempts"]
    assert report["runs"][0]["elapsed"] == pytest.approx(
        sum(value for name, value in times.items() if name not in ("job", "failed", "hardware"))
    )
