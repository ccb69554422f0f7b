"""`job why JOBID` and `job stacks JOBID` on jobs of a real Slurm: cause and host, though one node is silent."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from clusterctl.edges.scheduler import SlurmJobs
from clusterctl.fleet.blame import Certainty, Failure, Layer, Persistence
from clusterctl.fleet.errors import UsageError
from clusterctl.fleet.event import Kind, NewEvent, Stream
from clusterctl.fleet.payloads.jobs import JobAttributed
from clusterctl.operations import job_stacks, job_why
from clusterctl.operations.context import new_run_id
from clusterctl.operations.job_why import JobWhyRequest
from clusterctl.operations.operation import Control
from clusterctl.ports import Deadline
from tests.edges.slurm.cluster import SlurmCluster
from tests.edges.slurm.job_site import LOST_GPU, JobSite, eventually, job_site
from tests.processes import started_as

pytestmark = [pytest.mark.lab, pytest.mark.soak, pytest.mark.timeout(3600)]  # daemons with time limits

SLEEPER = "import time; time.sleep(600)"
RANK = """\
import datetime, os, sys, time
rank, host = int(os.environ["SLURM_PROCID"]), os.environ["SLURMD_NODENAME"]
stamp = datetime.datetime.now(datetime.timezone.utc)
print(f"[{stamp:%Y-%m-%d %H:%M:%S}] iteration {7:8}/ 500 | consumed samples: 1 | elapsed time per iteration (ms): 500 |",
      flush=True)
if host == "c2":
    with open("KERNEL", "a") as log:
        log.write(f"{stamp:%Y-%m-%dT%H:%M:%S.%f}+00:00 c2 kernel: LOST\\n")
    sys.exit(7)
print(f"[rank{rank}]:[E{stamp:%m%d %H:%M:%S}.5 x.cpp:1] text", file=sys.stderr)
print(f"[rank{rank}]: ncclRemoteError: A call failed possibly due to a network error", file=sys.stderr)
sys.exit(1)
"""


@pytest.fixture
def site(slurm: SlurmCluster, tmp_path: Path) -> Iterator[JobSite]:
    with job_site(tmp_path) as found:
        yield found


def submit(slurm: SlurmCluster, site: JobSite, command: str, *options: str) -> str:
    script = site.folder / "job.sh"
    script.write_text(f"#!/bin/bash\n{command}\n")
    argv = ["sbatch", "--parsable", "--nodes=3", f"--output={site.folder}/slurm-%j.out", *options, str(script)]
    done = subprocess.run(argv, env=slurm.environment, check=True, capture_output=True, text=True, timeout=600)
    return done.stdout.strip()


def state(job: str) -> str:
    return SlurmJobs().job(job, Deadline.after(60)).state


def failing(slurm: SlurmCluster, site: JobSite, *options: str) -> str:
    """A job whose GPU on c2 is lost, and which has ended."""
    rank = site.folder / "rank.py"
    log = site.hosts.kernel_log("c2")
    rank.write_text(RANK.replace("KERNEL", str(log)).replace("LOST", LOST_GPU))
    job = submit(slurm, site, f"srun -l /usr/bin/python3 {rank}", *options)
    eventually(lambda: state(job) == "FAILED")
    return job


def test_cause_and_host_of_a_failed_job(slurm: SlurmCluster, site: JobSite) -> None:
    """The GPU of c2, proven, from its kernel log; c3 is silent: it is named, and changes nothing else."""
    site.hosts.silent = {"c3"}
    job = failing(slurm, site)
    result = job_why.run_job(site.context, JobWhyRequest(job=job), Control())
    cause = result.attribution.cause
    assert [suspect.host for suspect in cause.suspects] == ["c2"]
    assert (cause.layer.value, cause.certainty.value, cause.error) == ("hardware", "proven", "xid_79")
    assert result.progress is not None
    assert result.progress.iteration == 7
    assert list(result.unread) == ["c3"]
    assert any("No route to host" in text for text in result.attribution.unmeasured)
    assert result.attribution.consequences["nccl_remote"] >= 1
    assert result.folder is not None
    assert result.folder.stat().st_mode & 0o077 == 0
    (event,) = site.context.journal.latest(Stream.JOB, Kind.JOB_ATTRIBUTED)
    assert (event.subject, event.payload.hosts) == (job, ("c2",))  # type: ignore[attr-defined]
    again = job_why.run_job(replace(site.context, run=new_run_id()), JobWhyRequest(job=job), Control())
    assert not again.recorded


def test_a_job_is_held_against_an_earlier_one(slurm: SlurmCluster, site: JobSite) -> None:
    """A record of another job that blames the same host is recurrence."""
    earlier = JobAttributed(
        failure=Failure.CRASH,
        layer=Layer.HARDWARE,
        certainty=Certainty.PROVEN,
        persistence=Persistence.UNKNOWN,
        rule="broken_part",
        error="xid_79",
        cause="lost",
        action="restart",
        hosts=("c2",),
    )
    site.context.journal.append([NewEvent(Stream.JOB, "4", earlier)])
    found = job_why.run_job(site.context, JobWhyRequest(job=failing(slurm, site)), Control())
    assert found.earlier == 1
    assert any("job 4" in text for text in found.attribution.cause.because)


def test_a_job_name_that_looks_like_a_field_is_refused(slurm: SlurmCluster, site: JobSite) -> None:
    """A user cannot have files of other paths collected by the name of a job."""
    job = submit(slurm, site, "true", "--job-name=x\n   StdOut=/etc/shadow")
    with pytest.raises(Exception, match="stdout occurs twice"):
        job_why.run_job(site.context, JobWhyRequest(job=job), Control())


def test_a_job_that_has_not_begun_and_one_that_is_unknown(slurm: SlurmCluster, site: JobSite) -> None:
    waiting = submit(slurm, site, "true", "--hold")
    with pytest.raises(UsageError, match="it has not begun: Slurm reports PENDING"):
        job_why.run_job(site.context, JobWhyRequest(job=waiting), Control())
    with pytest.raises(UsageError, match="Slurm does not know it"):
        job_why.run_job(site.context, JobWhyRequest(job="99999"), Control())
    with pytest.raises(UsageError, match="is no job id"):
        job_why.run_job(site.context, JobWhyRequest(job="1;id"), Control())


def test_stacks_of_a_running_job(slurm: SlurmCluster, site: JobSite) -> None:
    """Of each rank the interpreter's, rather than that of the shell around it; py-spy itself is played here."""
    job = submit(slurm, site, f"srun bash -c '/usr/bin/python3 -c \"{SLEEPER}\"; true'")
    eventually(lambda: state(job) == "RUNNING")
    eventually(lambda: len(started_as("/usr/bin/python3", "-c", SLEEPER)) == 3)
    result = job_stacks.run_job(replace(site.context, run=new_run_id()), job, Control())
    slurm.end_work()
    (group,) = result.groups
    assert group.ranks == (0, 1, 2)
    assert group.frames == ("wait (x/train.py:12)",)
