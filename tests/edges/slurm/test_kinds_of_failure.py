"""Thirteen kinds of failure on eight nodes of a real Slurm: what each is attributed to, and whether the job goes on.

A training loop of plain Python stands in for torch: steps, a barrier of files, checkpoints that the next attempt loads. GPUs, InfiniBand
and NFS are texts of their logs; the lost host is one whose state in Slurm is set to DOWN. `make soak` runs it; docs/reference/attribution.md
has the table of a run.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from clusterctl.edges.scheduler import SlurmJobs
from clusterctl.fleet.blame import Failure, Layer
from clusterctl.fleet.job_policy import JobPolicy
from clusterctl.jobs.supervision import JobOutcome
from clusterctl.operations import job_run, job_watch
from clusterctl.operations.context import new_run_id
from clusterctl.operations.job_inputs import JobRunRequest
from clusterctl.operations.job_watch import WatchRequest
from clusterctl.operations.operation import Control
from clusterctl.ports import Deadline
from tests.edges.slurm.cluster import SlurmCluster, running_slurm
from tests.edges.slurm.job_site import JobSite, eventually, job_site

pytestmark = [pytest.mark.lab, pytest.mark.soak, pytest.mark.timeout(3600)]

NODES = tuple(f"c{number}" for number in range(1, 9))
EVERY = 5
"""Steps between two checkpoints."""
RANK = """\
import datetime, json, os, signal, sys, time
from pathlib import Path
rank, host, attempt = int(os.environ["SLURM_PROCID"]), os.environ["SLURMD_NODENAME"], os.environ["CLUSTERCTL_ATTEMPT"]
logs, kept = Path(os.environ["CLUSTERCTL_LOGS"]), Path("FOLDER/checkpoint.json")
seen = Path("FOLDER/site/state/jobs") / os.environ["SLURM_JOB_ID"] / "progress.json"
first_attempt, victim = attempt == "1", rank == 1
def until(look):
    while not look():
        time.sleep(0.05)
def barrier(step):
    (logs / f"at-{step}-{rank}").touch()
    until(lambda: len(list(logs.glob(f"at-{step}-*"))) == 2)
def kernel(text):
    stamp = datetime.datetime.now(datetime.timezone.utc)
    with open(f"HOSTS/{host}/kernel.log", "a") as log:
        log.write(f"{stamp:%Y-%m-%dT%H:%M:%S.%f}+00:00 {host} kernel: {text}\\n")
def quota():
    one = Path("/sys/fs/cgroup/cpu")
    group = (one if one.is_dir() else one.parent) / f"clusterctl-test-{os.getpid()}"
    group.mkdir()
    (group / ("cpu.cfs_quota_us" if one.is_dir() else "cpu.max")).write_text("2000" if one.is_dir() else "2000 100000")
    (group / "cgroup.procs").write_text(str(os.getpid()))
def compute():
    until = time.thread_time() + 0.02
    while time.thread_time() < until:
        pass
def watched():
    until(lambda: seen.exists() and '"last": 12,' in seen.read_text() and '"saved": 10,' in seen.read_text())
def fault():
    BODY
start = json.loads(kept.read_text())["step"] + 1 if kept.exists() else 1
for step in range(start, 21):
    began = time.monotonic()
    compute()
    barrier(step)
    if step == 13 and FAULTY:
        if first_attempt:
            watched()
        fault()
    print(f"iteration {step:8}/ 20 | consumed samples: 1 | elapsed time per iteration (ms): {(time.monotonic() - began) * 1000:.1f} |", flush=True)
    if step % 5 == 0 and rank == 0:
        print(f"saving checkpoint at iteration {step:7d} to /x", flush=True)
        kept.with_suffix(".part").write_text(json.dumps({"step": step}))
        kept.with_suffix(".part").rename(kept)
        print(f"successfully saved checkpoint from iteration {step:7d} to /x", flush=True)
"""
SLOW = {"slower_percent": 400, "slower_batches": 3}
WAIT = "time.sleep(600)"
ABORT = 'print(f"[rank{rank}]: ncclRemoteError: A call failed possibly due to a network error", file=sys.stderr)'


def on_victim(*lines: str, others: str = f"{ABORT}; {WAIT}") -> str:
    """The victim does this; the other rank reports the end of its peer, and waits."""
    return f"if victim:\n        {'; '.join(lines)}\n    else:\n        {others}"


@dataclass(frozen=True, slots=True)
class Kind:
    """A fault, what it is attributed to, and whether the job goes on without a decision. `host`: the victim is named.

    `at_last`: the layer of the last attempt, where other hosts have shown another cause.
    """

    name: str
    body: str
    failure: Failure
    layer: Layer
    host: bool
    goes_on: bool
    always: bool = False
    at_last: Layer | None = None


KINDS = (
    Kind("GPU lost", on_victim(
        'kernel("NVRM: Xid (PCI:0000:3b:00): 79, pid=7, name=python3, GPU has fallen off the bus.")', "sys.exit(7)"
    ), Failure.CRASH, Layer.HARDWARE, host=True, goes_on=True),
    Kind("uncorrectable ECC error", on_victim(
        'kernel("NVRM: Xid (PCI:0000:3b:00): 64, pid=7, name=python3, Row Remapper: failed to remap")',
        'print("RuntimeError: CUDA error: uncorrectable ECC error encountered", file=sys.stderr)', "sys.exit(1)",
    ), Failure.CRASH, Layer.HARDWARE, host=True, goes_on=True),
    Kind("InfiniBand port down", on_victim(
        'print(f"{host}:7:8 [0] transport/net_ib.cc:93 NCCL WARN NET/IB : mlx5_2:1 Got async event : port error")',
        "sys.stdout.flush()", "sys.exit(6)",
    ), Failure.HANG, Layer.FABRIC, host=True, goes_on=True),
    Kind("host lost", f"(logs / 'ready').touch()\n    {WAIT}", Failure.CRASH, Layer.HARDWARE, host=True, goes_on=True),
    # a slurmd that is gone for ten seconds is not yet a lost node: the job hangs first, and the next attempt gets others
    Kind("slurmd killed", f"(logs / 'ready').touch()\n    {WAIT}", Failure.HANG, Layer.SYSTEM_SOFTWARE, host=True,
         goes_on=True),
    Kind("rank stopped", on_victim("os.kill(os.getpid(), signal.SIGSTOP)", others=WAIT), Failure.HANG,
         Layer.SYSTEM_SOFTWARE, host=True, goes_on=True),
    Kind("host slow by a quota", on_victim("quota()", others="pass"), Failure.SLOW, Layer.SYSTEM_SOFTWARE, host=True,
         goes_on=True),
    Kind("NaN at a step", on_victim(
        'raise AssertionError(f"Rank {rank}: found NaN in local forward loss calculation. Device: 2,")'
    ), Failure.CRASH, Layer.HARDWARE, host=True, goes_on=False, always=True, at_last=Layer.APPLICATION),
    Kind("CUDA out of memory", on_victim(
        'raise RuntimeError("CUDA out of memory. Tried to allocate 2.00 GiB (GPU 0; 79 GiB total capacity)")'
    ), Failure.CRASH, Layer.APPLICATION, host=False, goes_on=False, always=True),
    Kind("NFS stall", f'kernel("nfs: server 10.0.0.9 not responding, still trying")\n    {WAIT}',
         Failure.HANG, Layer.STORAGE, host=False, goes_on=False),
    Kind("disk full", on_victim('raise OSError(28, "No space left on device", "/data/x")'),
         Failure.CRASH, Layer.STORAGE, host=False, goes_on=False, always=True),
    Kind("error of the program", on_victim('raise ValueError("shapes differ")'),
         Failure.CRASH, Layer.APPLICATION, host=False, goes_on=False, always=True),
    Kind("data loader killed", on_victim('raise RuntimeError("DataLoader worker (pid 7) is killed by signal: Killed. ")'),
         Failure.CRASH, Layer.DATA, host=False, goes_on=False, always=True),
)  # fmt: skip


@pytest.fixture(scope="module")
def eight() -> Iterator[SlurmCluster]:
    """A Slurm of its own: a node that is silent for ten seconds is down."""
    with running_slurm(NODES, settings="SlurmdTimeout=10\n") as found:
        before = {name: os.environ.get(name) for name in ("SLURM_CONF", "PATH")}
        os.environ.update(found.environment)
        yield found
        for name, value in before.items():
            os.environ.pop(name) if value is None else os.environ.update({name: value})


@pytest.fixture
def site(eight: SlurmCluster, tmp_path: Path) -> Iterator[JobSite]:
    with job_site(tmp_path, NODES) as found:
        yield found


def request(site: JobSite, kind: Kind) -> JobRunRequest:
    rank, script = site.folder / "rank.py", site.folder / "train.sh"
    text = RANK.replace("BODY", kind.body).replace("FOLDER", str(site.folder)).replace("HOSTS", str(site.hosts.folder))
    rank.write_text(text.replace("FAULTY", "True" if kind.always else "first_attempt"))
    script.write_text(f"#!/bin/bash\nsrun -K1 -l /usr/bin/python3 {rank}\n")
    return JobRunRequest(
        script=str(script), folder=str(site.folder / "logs"), nodes=2, spares=2,
        policy=JobPolicy(retries=2, backoff_s=1, hang_s=20, setup_s=300, **(SLOW if kind.failure is Failure.SLOW else {})),
    )  # fmt: skip


def from_outside(slurm: SlurmCluster, site: JobSite, kind: Kind, victim: str) -> None:
    """What no rank can do to itself, once the ranks have come to the step."""
    ready = site.folder / "logs/attempt-1/ready"
    if kind.name == "host lost":
        eventually(ready.exists)
        slurm.update(victim, "State=DOWN", "Reason=died")
    elif kind.name == "slurmd killed":
        eventually(ready.exists)
        os.kill(int((slurm.folder / f"slurmd.{victim}.pid").read_text()), signal.SIGKILL)


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_a_kind_of_failure(eight: SlurmCluster, site: JobSite, kind: Kind) -> None:
    """Failure, layer and host are right; a job that may go on completes, and loses at most one checkpoint interval."""
    import threading

    ordered = job_run.run(site.context, request(site, kind), Control())
    (attempt,) = ordered.attempts
    eventually(lambda: SlurmJobs().job(attempt.job, Deadline.after(60)).state in ("RUNNING", "FAILED"))
    injector = threading.Thread(target=from_outside, args=(eight, site, kind, attempt.nodes[1]), daemon=True)
    injector.start()
    found = job_watch.watch(
        replace(site.context, run=new_run_id()), WatchRequest(run=ordered.id, poll_s=0.5), Control()
    )  # fmt: skip
    first = found.attempts[0].ended
    assert first is not None
    print(f"\n| {kind.name} | {first.failure.value} | {first.layer.value} | {first.certainty.value} "
          f"| {'victim' if first.hosts == (attempt.nodes[1],) else ', '.join(first.hosts) or 'none'} | {first.action} "
          f"| {found.outcome.value if found.outcome else ''} | {(first.last or 0) - (first.saved or 0)} |")  # fmt: skip
    assert (first.failure, first.layer) == (kind.failure, kind.layer)
    if kind.host:
        assert first.hosts == (attempt.nodes[1],)
    assert (found.outcome is JobOutcome.COMPLETED) is kind.goes_on, found.reason
    assert kind.at_last in (None, found.ended[-1].layer)
    assert first.last is not None
    assert first.last - (first.saved or 0) <= EVERY
