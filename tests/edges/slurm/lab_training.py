"""A training with PyTorch's DistributedDataParallel (gloo) between two hosts of a lab pool, and stories of its failures.

The ranks are started by Slurm on two hosts, each with systemd, addresses and a file system of its own. They read their batches from files, save
checkpoints, and go on from the last one. At one step both ranks wait until the story's fault has been injected on the host of the second one.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import threading
from array import array
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from lab.tests.lab_kit import eventually, running_lab
from tests.edges.slurm.cluster import missing
from tests.edges.slurm.lab_pool import NODES, LabPool, lab_pool

PYTHON = os.environ.get("CLUSTERCTL_TORCH_PYTHON", sys.executable)

MINUTES = 60.0
EVERY, STEPS, FAILS_AT = 5, 20, 13
"""Steps between two checkpoints, of the training, and the one at which the fault comes."""
BATCH, WIDTH = 32, 64
TRAIN = """\
#!/bin/bash
export PYTHONPATH={torch} GLOO_SOCKET_IFNAME=ib0
srun -K0 -W30 -l /usr/bin/python3 -u {folder}/rank.py
"""
RANK = """\
import json, os, sys, time
from datetime import timedelta
from pathlib import Path
import torch
from torch.nn.parallel import DistributedDataParallel
rank, attempt, host = int(os.environ["SLURM_PROCID"]), os.environ["CLUSTERCTL_ATTEMPT"], os.environ["SLURMD_NODENAME"]
folder, data = Path("FOLDER"), Path("DATA")
logs, kept = Path(os.environ["CLUSTERCTL_LOGS"]), folder / "checkpoint.pt"
torch.set_num_threads(1)
def wait_for_the_fault():
    if rank == 1:
        ready()
    while not (folder / "go").exists():
        time.sleep(0.1)
def ready():
    (folder / "ready.part").write_text(json.dumps({"host": host, "pid": os.getpid(), "job": os.environ["SLURM_JOB_ID"]}))
    (folder / "ready.part").rename(folder / "ready.json")
def fault():
    BODY
def load(step):
    return torch.frombuffer(bytearray((data / f"{step}-{rank}").read_bytes()), dtype=torch.float32).view(ROWS, WIDTH)
torch.distributed.init_process_group(
    "gloo", init_method=f"file://{logs}/store", rank=rank, world_size=2, timeout=timedelta(seconds=TIMEOUT_S))
torch.manual_seed(7)
model = DistributedDataParallel(torch.nn.Sequential(
    torch.nn.Linear(WIDTH, 2048), torch.nn.ReLU(), torch.nn.Linear(2048, 1024), torch.nn.ReLU(), torch.nn.Linear(1024, 1)))
optimizer, start = torch.optim.SGD(model.parameters(), lr=0.001), 1
if kept.exists():
    found = torch.load(kept)
    model.load_state_dict(found["model"])
    optimizer.load_state_dict(found["optimizer"])
    start = found["step"] + 1
for step in range(start, STEPS + 1):
    began = time.monotonic()
    other = None
    if step == FAILS_AT and FAULTY:
        wait_for_the_fault()
        other = fault() if rank == 1 else None
    batch = load(step) if other is None else other
    loss = model(batch).square().mean()
    shown = loss.detach().clone()
    torch.distributed.all_reduce(shown)
    if not torch.isfinite(shown):
        print(f"Loss is {shown.item()}, stopping training", flush=True)
        sys.exit(1)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if attempt == "1" and step >= FAILS_AT:
        time.sleep(PACE_S)
    print(f"iteration {step:8}/ {STEPS} | consumed samples: 1 | elapsed time per iteration (ms): {(time.monotonic() - began) * 1000:.1f} |", flush=True)
    if step % EVERY == 0 and rank == 0:
        print(f"saving checkpoint at iteration {step:7d} to {folder}", flush=True)
        torch.save({"step": step, "model": model.state_dict(), "optimizer": optimizer.state_dict()}, kept.with_suffix(".part"))
        kept.with_suffix(".part").rename(kept)
        print(f"successfully saved checkpoint from iteration {step:7d} to {folder}", flush=True)
torch.distributed.barrier()
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """What breaks, and how.

    body       what the second rank does at the step, once the fault is there: Python, `pass` for nothing
    inject     from outside, on the host of the second rank
    always     also in further attempts
    steps      of the training; `pace_s`: seconds that each of its steps after the fault takes in addition
    timeout_s  of the collective operations
    """

    body: str = "pass"
    inject: Callable[[Story], None] = lambda story: None
    always: bool = False
    steps: int = STEPS
    pace_s: float = 0.0
    timeout_s: int = 1800
    options: tuple[str, ...] = ()


class Story:
    """One supervised run of a training in a pool, in a folder of its own below the shared one."""

    def __init__(self, pool: LabPool, name: str, fault: Fault, data: Path | None = None) -> None:
        self.pool = pool
        self.fault = fault
        self.folder = pool.shared / name
        self.folder.mkdir()
        self.data = data or self.folder / "data"
        self.found: dict[str, Any] = {}
        write_data(self.data, fault.steps)
        self._write()

    @property
    def victim(self) -> str:
        """Return the host of the second rank of the first attempt, once it has come to the step."""
        return str(self._ready["host"])

    @property
    def pid(self) -> int:
        return int(self._ready["pid"])

    @property
    def _ready(self) -> Mapping[str, Any]:
        return dict(json.loads((self.folder / "ready.json").read_text()))

    def run(self, *options: str) -> subprocess.CompletedProcess[str]:
        """Order the training, and follow it to its end."""
        injector = threading.Thread(target=self._inject, daemon=True)
        injector.start()
        done = self.pool.clusterctl(
            "job", "run", str(self.folder / "train.sh"), "--nodes", "2", "--spares", "1", "--logs", str(self.folder / "logs"),
            "--retries", "2", "--backoff", "1s", "--setup-limit", "30min", *self.fault.options, *options, "--watch", "--yes",
            "-o", "json",
        )  # fmt: skip
        injector.join(60)
        self.found = json.loads(done.stdout) if done.returncode in (0, 1) and done.stdout else {}
        return done

    def output(self, attempt: int = 0) -> str:
        """Return the last lines of an attempt's output."""
        job = self.found["attempts"][attempt]["job"]
        return (self.folder / f"logs/attempt-{attempt + 1}/slurm-{job}.out").read_text(errors="replace")[-4000:]

    def _inject(self) -> None:
        """Break the host once the rank waits for it, and the watcher has seen the checkpoint and the step before."""
        if not eventually((self.folder / "ready.json").exists, 60 * MINUTES):
            return
        progress = self.pool.site / "state/jobs" / str(self._ready["job"]) / "progress.json"
        last, saved = f'"last": {FAILS_AT - 1},', f'"saved": {FAILS_AT // EVERY * EVERY},'
        eventually(lambda: progress.exists() and last in progress.read_text() and saved in progress.read_text())
        self.fault.inject(self)
        (self.folder / "go").touch()

    def _write(self) -> None:
        text = RANK.replace("BODY", self.fault.body).replace("FOLDER", str(self.folder)).replace("DATA", str(self.data))
        numbers = {
            "STEPS": self.fault.steps, "FAILS_AT": FAILS_AT, "EVERY": EVERY, "ROWS": BATCH, "WIDTH": WIDTH,
            "TIMEOUT_S": self.fault.timeout_s, "PACE_S": self.fault.pace_s,
        }  # fmt: skip
        for name, value in numbers.items():
            text = text.replace(name, str(value))
        text = text.replace("FAULTY", "True" if self.fault.always else 'attempt == "1"')
        (self.folder / "rank.py").write_text(text)
        script = TRAIN.format(torch=self.pool.shared / "torch", folder=self.folder)
        (self.folder / "train.sh").write_text(script)


def write_data(folder: Path, steps: int) -> None:
    """Write a batch of single-precision numbers for each step and rank, unless they are there."""
    folder.mkdir(exist_ok=True)
    for step in range(1, steps + 1):
        for rank in (0, 1):
            if not (folder / f"{step}-{rank}").exists():
                source = random.Random(1000 * step + rank)  # the same in each attempt
                numbers = array("f", (source.gauss(0.0, 1.0) for _ in range(BATCH * WIDTH)))
                (folder / f"{step}-{rank}").write_bytes(numbers.tobytes())


@contextmanager
def torch_pool(name: str, subnet: str, proven_fault: str = "revalidate") -> Iterator[LabPool]:
    """A lab of nine hosts: eight gold nodes with slurmd, and the controllers; all of them read PyTorch from the shared folder."""
    packages = torch_packages()
    if missing():
        pytest.skip("Slurm is not installed")
    with tempfile.TemporaryDirectory(prefix=name, dir="/var/tmp") as path:
        folder = Path(path)
        folder.chmod(0o755)
        shared = folder / "shared"
        shared.mkdir()
        skipped = shutil.ignore_patterns("__pycache__", "pip", "setuptools", "include")
        shutil.copytree(packages, shared / "torch", symlinks=True, ignore=skipped)
        if (py_spy := Path(PYTHON).with_name("py-spy")).exists():
            shutil.copy(py_spy, shared / "py-spy")
        with running_lab(name, subnet, folder, "--hosts", str(len(NODES) + 1)) as lab:
            pool = LabPool(lab, folder / "slurm-client", shared, proven_fault=proven_fault)
            with lab_pool(pool):
                yield pool


def torch_packages() -> Path:
    """Return the folder with PyTorch for the hosts' own interpreter; without it the tests do not run."""
    look = (
        "import pathlib, sys, torch, torch.distributed as d; print(pathlib.Path(torch.__file__).parents[1]); "
        "raise SystemExit(not d.is_gloo_available() or sys.version_info[:2] != (3, 11))"
    )
    found = subprocess.run([PYTHON, "-c", look], capture_output=True, text=True, check=False)
    if found.returncode:
        pytest.skip("CLUSTERCTL_TORCH_PYTHON names no Python 3.11 with PyTorch")
    return Path(found.stdout.strip())
