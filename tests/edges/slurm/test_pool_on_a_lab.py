"""From a lost GPU to gold again, on lab hosts that are nodes of a Slurm with accounting: one story, each part of it real.

Ansible sets Slurm up as docs/how-to/slurm.md has it: slurmd on eight hosts, slurmctld, slurmdbd and MariaDB on a ninth. The training is PyTorch's
DistributedDataParallel over gloo between two hosts. The lab's machines, their GPUs and kernel logs are emulated. `make soak` runs it where
`CLUSTERCTL_TORCH_PYTHON` names an interpreter with PyTorch of the version of Python that the hosts have.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from lab.tests.lab_kit import eventually, needs_lab, running_lab
from tests.edges.slurm.cluster import missing
from tests.edges.slurm.lab_pool import CONTROLLER, NODES, LabPool, lab_pool

pytestmark = [pytest.mark.lab, pytest.mark.soak, needs_lab, pytest.mark.timeout(4 * 3600)]

PYTHON = os.environ.get("CLUSTERCTL_TORCH_PYTHON", sys.executable)
MINUTES = 60.0
EVERY, STEPS, FAILS_AT = 5, 20, 13
"""Steps between two checkpoints, of the training, and the one at which the GPU is lost."""
TRAIN = """\
#!/bin/bash
export PYTHONPATH={shared}/torch GLOO_SOCKET_IFNAME=eth0
srun -K0 -W30 -l /usr/bin/python3 -u {shared}/rank.py
"""
RANK = """\
import os, sys, time
from pathlib import Path
import torch
from torch.nn.parallel import DistributedDataParallel
rank, attempt = int(os.environ["SLURM_PROCID"]), os.environ["CLUSTERCTL_ATTEMPT"]
logs, kept = Path(os.environ["CLUSTERCTL_LOGS"]), Path("SHARED/checkpoint.pt")
torch.set_num_threads(1)
torch.distributed.init_process_group("gloo", init_method=f"file://{logs}/store", rank=rank, world_size=2)
torch.manual_seed(7)
model = DistributedDataParallel(torch.nn.Sequential(torch.nn.Linear(64, 256), torch.nn.ReLU(), torch.nn.Linear(256, 1)))
optimizer, start = torch.optim.SGD(model.parameters(), lr=0.01), 1
if kept.exists():
    found = torch.load(kept)
    model.load_state_dict(found["model"])
    optimizer.load_state_dict(found["optimizer"])
    start = found["step"] + 1
for step in range(start, STEPS + 1):
    began = time.monotonic()
    if step == FAILS_AT and attempt == "1" and rank == 1:
        Path("SHARED/ready").write_text(os.environ["SLURMD_NODENAME"])
        while not Path("SHARED/lost").exists():
            time.sleep(0.1)
        print("RuntimeError: CUDA error: unspecified launch failure", file=sys.stderr, flush=True)
        os._exit(1)
    loss = model(torch.randn(32, 64, generator=torch.Generator().manual_seed(1000 * step + rank))).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(f"iteration {step:8}/ {STEPS} | consumed samples: 1 | elapsed time per iteration (ms): {(time.monotonic() - began) * 1000:.1f} |", flush=True)
    if step % EVERY == 0 and rank == 0:
        print(f"saving checkpoint at iteration {step:7d} to SHARED", flush=True)
        torch.save({"step": step, "model": model.state_dict(), "optimizer": optimizer.state_dict()}, kept.with_suffix(".part"))
        kept.with_suffix(".part").rename(kept)
        print(f"successfully saved checkpoint from iteration {step:7d} to SHARED", flush=True)
torch.distributed.barrier()
"""


@pytest.fixture(scope="module")
def packages() -> Path:
    """The folder with PyTorch, for the hosts' own interpreter."""
    look = (
        "import pathlib, sys, torch, torch.distributed as d; print(pathlib.Path(torch.__file__).parents[1]); "
        "raise SystemExit(not d.is_gloo_available() or sys.version_info[:2] != (3, 11))"
    )
    found = subprocess.run([PYTHON, "-c", look], capture_output=True, text=True, check=False)
    if found.returncode:
        pytest.skip("CLUSTERCTL_TORCH_PYTHON names no Python 3.11 with PyTorch")
    return Path(found.stdout.strip())


@pytest.fixture(scope="module")
def pool(packages: Path) -> Iterator[LabPool]:
    if missing():
        pytest.skip("Slurm is not installed")
    with tempfile.TemporaryDirectory(prefix="pool", dir="/var/tmp") as name:
        folder = Path(name)
        folder.chmod(0o755)
        shared = folder / "shared"
        shared.mkdir()
        shutil.copytree(packages, shared / "torch", symlinks=True, ignore=shutil.ignore_patterns("__pycache__"))
        with (
            running_lab("jobpool", "10.199.0.0/16", folder, "--hosts", str(len(NODES) + 1)) as lab,
            lab_pool(lab, folder / "slurm-client", shared) as found,
        ):
            before = os.environ.get("SLURM_CONF")
            os.environ["SLURM_CONF"] = found.environment["SLURM_CONF"]
            yield found
            os.environ.pop("SLURM_CONF")
            if before is not None:
                os.environ["SLURM_CONF"] = before


def write_training(pool: LabPool) -> Path:
    """Write the script and what its ranks run into the shared folder; return the script."""
    text = RANK.replace("SHARED", str(pool.shared))
    for name, value in (("STEPS", STEPS), ("FAILS_AT", FAILS_AT), ("EVERY", EVERY)):
        text = text.replace(name, str(value))
    (pool.shared / "rank.py").write_text(text)
    script = pool.shared / "train.sh"
    script.write_text(TRAIN.format(shared=pool.shared))
    return script


def lose_a_gpu(pool: LabPool) -> None:
    """Once the rank has come to the step, let a GPU of its host leave the bus; then let the rank meet it."""
    assert eventually((pool.shared / "ready").exists, 30 * MINUTES)
    assert eventually(lambda: (pool.shared / "ready").read_text() != "")
    pool.lab("inject", "gpu-off-the-bus", f"{(pool.shared / 'ready').read_text()}:gpu0")
    (pool.shared / "lost").touch()


def accounted(pool: LabPool, job: str) -> list[str]:
    """Return state and nodes of a job as slurmdbd has them."""
    line = pool.slurm("sacct", "-j", job, "-X", "-n", "-P", "--format=State,NNodes,NodeList").strip()
    return line.split("|")


def revalidations(pool: LabPool) -> list[dict[str, Any]]:
    """Return the detached runs that jobs have ordered."""
    found = json.loads(pool.ordered("runs", "list", "-o", "json"))["runs"]
    return [one for one in found if one["command"] == "job revalidate"]


def test_accounting_knows_the_pool(pool: LabPool) -> None:
    """All eight hosts are idle nodes; the ninth runs slurmctld and slurmdbd, and its database has the cluster."""
    assert eventually(lambda: pool.states() == dict.fromkeys(NODES, "idle")), pool.states()
    assert pool.slurm("sacctmgr", "-n", "-P", "list", "cluster", "format=cluster").split() == ["pool"]
    units = pool.ssh(CONTROLLER, "systemctl is-active slurmctld slurmdbd mariadb munge")
    assert units.split() == ["active"] * 4


def test_from_a_lost_gpu_to_gold_again(pool: LabPool) -> None:
    """The training ends on healthy hosts from its checkpoint; the broken host stays out until its repair is proven."""
    script = write_training(pool)
    injector = threading.Thread(target=lose_a_gpu, args=(pool,), daemon=True)
    injector.start()
    done = pool.clusterctl(
        "job", "run", str(script), "--nodes", "2", "--spares", "1", "--logs", str(pool.shared / "logs"), "--retries", "2",
        "--backoff", "1s", "--setup-limit", "30min", "--hang-after", "10min", "--watch", "--yes", "-o", "json",
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    victim = (pool.shared / "ready").read_text()
    run = json.loads(done.stdout)
    first, second = run["attempts"]
    assert (first["layer"], first["certainty"], first["hosts"]) == ("hardware", "proven", [victim])
    assert victim not in second["nodes"]
    assert (first["last_step"], first["checkpoint"], second["first_step"], second["last_step"]) == (12, 10, 11, 20)
    assert accounted(pool, first["job"])[:2] == ["FAILED", "2"]
    assert accounted(pool, second["job"])[:2] == ["COMPLETED", "2"]

    (ordered,) = revalidations(pool)
    assert pool.states()[victim].startswith("drain")
    assert eventually(lambda: revalidations(pool)[0]["state"] == "ended", 60 * MINUTES), ordered
    assert pool.stage(victim) == "quarantined"
    assert pool.states()[victim] == "drained"

    pool.lab("heal", victim)
    pool.ordered("revalidate", victim, "--repaired", "gpu0", "--yes")
    assert pool.stage(victim) == "gold"
    assert eventually(lambda: pool.states()[victim] == "idle"), pool.states()
