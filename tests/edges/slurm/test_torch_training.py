"""A training with PyTorch's DistributedDataParallel (gloo, processors alone) on a real Slurm, and how its failures end.

The ranks, their model, gradients and checkpoints are PyTorch's; what a peer's end looks like is what gloo raises. The lost GPU is a
text in a kernel log, and the lost host one whose state in Slurm is set to DOWN. `make soak` runs it where `CLUSTERCTL_TORCH_PYTHON` names an
interpreter with PyTorch, or this one has it; docs/reference/attribution.md has the table of a run.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import replace
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
from tests.edges.slurm.cluster import SlurmCluster
from tests.edges.slurm.job_site import JobSite, eventually, job_site
from tests.edges.slurm.test_kinds_of_failure import EVERY, NODES, Kind, eight, from_outside

__all__ = ["eight"]
pytestmark = [pytest.mark.lab, pytest.mark.soak, pytest.mark.timeout(3600)]

PYTHON = os.environ.get("CLUSTERCTL_TORCH_PYTHON", sys.executable)
RANK = """\
import datetime, os, signal, sys, time
from pathlib import Path
import torch
from torch.nn.parallel import DistributedDataParallel
rank, host, attempt = int(os.environ["SLURM_PROCID"]), os.environ["SLURMD_NODENAME"], os.environ["CLUSTERCTL_ATTEMPT"]
logs, kept = Path(os.environ["CLUSTERCTL_LOGS"]), Path("FOLDER/checkpoint.pt")
seen = Path("FOLDER/site/state/jobs") / os.environ["SLURM_JOB_ID"] / "progress.json"
first_attempt, victim = attempt == "1", rank == 1
torch.set_num_threads(1)
def until(look):
    while not look():
        time.sleep(0.05)
def kernel(text):
    stamp = datetime.datetime.now(datetime.timezone.utc)
    with open(f"HOSTS/{host}/kernel.log", "a") as log:
        log.write(f"{stamp:%Y-%m-%dT%H:%M:%S.%f}+00:00 {host} kernel: {text}\\n")
def watched():
    until(lambda: seen.exists() and '"last": 12,' in seen.read_text() and '"saved": 10,' in seen.read_text())
def fault():
    BODY
torch.distributed.init_process_group("gloo", init_method=f"file://{logs}/store", rank=rank, world_size=2)
torch.manual_seed(7)
model = DistributedDataParallel(torch.nn.Sequential(torch.nn.Linear(64, 256), torch.nn.ReLU(), torch.nn.Linear(256, 1)))
optimizer, start = torch.optim.SGD(model.parameters(), lr=0.01), 1
if kept.exists():
    found = torch.load(kept)
    model.load_state_dict(found["model"])
    optimizer.load_state_dict(found["optimizer"])
    start = found["step"] + 1
for step in range(start, 21):
    began = time.monotonic()
    batch = torch.randn(32, 64, generator=torch.Generator().manual_seed(1000 * step + rank))
    if step == 13 and FAULTY:
        if first_attempt:
            watched()
        other = fault()
        batch = batch if other is None else other
    loss = model(batch).square().mean()
    if not torch.isfinite(loss):
        print(f"Loss is {loss.item()}, stopping training", flush=True)
        os._exit(1)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(f"iteration {step:8}/ 20 | consumed samples: 1 | elapsed time per iteration (ms): {(time.monotonic() - began) * 1000:.1f} |", flush=True)
    if step % 5 == 0 and rank == 0:
        print(f"saving checkpoint at iteration {step:7d} to /x", flush=True)
        torch.save({"step": step, "model": model.state_dict(), "optimizer": optimizer.state_dict()}, kept.with_suffix(".part"))
        kept.with_suffix(".part").rename(kept)
        print(f"successfully saved checkpoint from iteration {step:7d} to /x", flush=True)
torch.distributed.barrier()
"""
WAIT = "time.sleep(600)"


def on_victim(*lines: str) -> str:
    """The victim does this; the other rank goes on, and meets what PyTorch makes of it."""
    return f"if victim:\n        {'; '.join(lines)}"


KINDS = (
    Kind("GPU lost", on_victim(
        'kernel("NVRM: Xid (PCI:0000:3b:00): 79, pid=7, name=python3, GPU has fallen off the bus.")', "os._exit(7)"
    ), Failure.CRASH, Layer.HARDWARE, host=True, goes_on=True),
    Kind("host lost", f"(logs / 'ready').touch()\n    {WAIT}", Failure.CRASH, Layer.HARDWARE, host=True, goes_on=True),
    Kind("rank stopped", on_victim("os.kill(os.getpid(), signal.SIGSTOP)"), Failure.HANG, Layer.SYSTEM_SOFTWARE,
         host=True, goes_on=True),
    Kind("rank killed", on_victim("os.kill(os.getpid(), signal.SIGKILL)"), Failure.CRASH, Layer.UNKNOWN, host=False,
         goes_on=True),
    Kind("NaN in the data", on_victim("return torch.full((32, 64), float('nan'))"), Failure.CRASH, Layer.HARDWARE,
         host=True, goes_on=False, always=True, at_last=Layer.APPLICATION),
    Kind("error of the program", on_victim("return torch.zeros(32, 63)"), Failure.CRASH, Layer.APPLICATION, host=False,
         goes_on=False, always=True),
)  # fmt: skip


@pytest.fixture(scope="module")
def torch() -> None:
    """PyTorch with gloo; where there is none, the tests of this module do not run."""
    look = "import torch.distributed as d; raise SystemExit(not d.is_gloo_available())"
    if (
        shutil.which(PYTHON) is None
        or subprocess.run([PYTHON, "-c", look], capture_output=True, check=False).returncode
    ):
        pytest.skip("PyTorch is not installed: CLUSTERCTL_TORCH_PYTHON names an interpreter that has it")


@pytest.fixture
def site(eight: SlurmCluster, torch: None, tmp_path: Path) -> Iterator[JobSite]:
    with job_site(tmp_path, NODES) as found:
        yield found


def request(site: JobSite, kind: Kind) -> JobRunRequest:
    rank, script = site.folder / "rank.py", site.folder / "train.sh"
    text = RANK.replace("BODY", kind.body).replace("FOLDER", str(site.folder)).replace("HOSTS", str(site.hosts.folder))
    rank.write_text(text.replace("FAULTY", "True" if kind.always else "first_attempt"))
    script.write_text(f"#!/bin/bash\nexport GLOO_SOCKET_IFNAME=lo\nsrun -K0 -W5 -l {PYTHON} -u {rank}\n")
    return JobRunRequest(
        script=str(script), folder=str(site.folder / "logs"), nodes=2, spares=2,
        policy=JobPolicy(retries=2, backoff_s=1, hang_s=20 if kind.failure is Failure.HANG else 120, setup_s=300),
    )  # fmt: skip


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_a_training_survives_what_it_can(eight: SlurmCluster, site: JobSite, kind: Kind) -> None:
    """Failure, layer and host are right; a job that may go on completes, and loses at most one checkpoint interval."""
    ordered = job_run.run(site.context, request(site, kind), Control())
    (attempt,) = ordered.attempts
    eventually(lambda: SlurmJobs().job(attempt.job, Deadline.after(60)).state in ("RUNNING", "FAILED"))
    injector = threading.Thread(target=from_outside, args=(eight, site, kind, attempt.nodes[1]), daemon=True)
    injector.start()
    context = replace(site.context, run=new_run_id())
    found = job_watch.watch(context, WatchRequest(run=ordered.id, poll_s=0.5), Control())
    first = found.attempts[0].ended
    assert first is not None
    print(f"\n| {kind.name} | {first.failure.value} | {first.layer.value} | {first.certainty.value} "
          f"| {'right' if first.hosts == (attempt.nodes[1],) else ', '.join(first.hosts) or 'none'} | {first.action} "
          f"| {found.outcome.value if found.outcome else ''} | {(first.last or 0) - (first.saved or 0)} |")  # fmt: skip
    shown = (site.folder / "logs/attempt-1" / f"slurm-{attempt.job}.out").read_text(errors="replace")
    assert (first.failure, first.layer) == (kind.failure, kind.layer), shown[-3000:]
    if kind.host:
        assert first.hosts == (attempt.nodes[1],)
    assert (found.outcome is JobOutcome.COMPLETED) is kind.goes_on, found.reason
    assert kind.at_last in (None, found.ended[-1].layer)
    assert first.last is not None
    assert first.last - (first.saved or 0) <= EVERY
