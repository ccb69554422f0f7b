"""From a lost GPU to gold again, on lab hosts that are nodes of a Slurm with accounting: one story, each part of it real.

Ansible sets Slurm up as docs/how-to/slurm.md has it: slurmd on eight hosts, slurmctld, slurmdbd and MariaDB on a ninth. The training is PyTorch's
DistributedDataParallel over gloo between two hosts. The lab's machines, their GPUs and kernel logs are emulated. `make soak` runs it where
`CLUSTERCTL_TORCH_PYTHON` names an interpreter with PyTorch of the version of Python that the hosts have.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from lab.tests.lab_kit import eventually, needs_lab
from tests.edges.slurm.lab_pool import CONTROLLER, NODES, LabPool
from tests.edges.slurm.lab_training import Fault, Story, torch_pool

pytestmark = [pytest.mark.lab, pytest.mark.soak, needs_lab, pytest.mark.timeout(4 * 3600)]

MINUTES = 60.0


@pytest.fixture(scope="module")
def pool() -> Iterator[LabPool]:
    with torch_pool("jobpool", "10.199.0.0/16") as found:
        yield found


def lose_a_gpu(story: Story) -> None:
    story.pool.lab("inject", "gpu-off-the-bus", f"{story.victim}:gpu0")


def accounted(pool: LabPool, job: str) -> list[str]:
    """Return state and nodes of a job as slurmdbd has them."""
    line = pool.slurm("sacct", "-j", job, "-X", "-n", "-P", "--format=State,NNodes,NodeList").strip()
    return line.split("|")


def revalidations(pool: LabPool) -> list[dict[str, Any]]:
    """Return the detached runs that jobs have ordered."""
    found = json.loads(pool.ordered("runs", "list", "-o", "json"))["runs"]
    return [one for one in found if one["command"] == "job revalidate"]


def test_accounting_knows_the_pool(pool: LabPool) -> None:
    """All hosts but the last are idle nodes; that one runs slurmctld and slurmdbd, and its database has the cluster."""
    assert eventually(lambda: pool.states() == dict.fromkeys(NODES, "idle")), pool.states()
    assert pool.slurm("sacctmgr", "-n", "-P", "list", "cluster", "format=cluster").split() == ["pool"]
    units = pool.ssh(CONTROLLER, "systemctl is-active slurmctld slurmdbd mariadb munge")
    assert units.split() == ["active"] * 4


def test_from_a_lost_gpu_to_gold_again(pool: LabPool) -> None:
    """The training ends on healthy hosts from its checkpoint; the broken host stays out until its repair is proven."""
    body = "print('RuntimeError: CUDA error: unspecified launch failure', file=sys.stderr, flush=True); os._exit(1)"
    story = Story(pool, "lost", Fault(body=body, inject=lose_a_gpu, options=("--hang-after", "10min")))
    done = story.run()
    assert done.returncode == 0, done.stdout + done.stderr
    victim, run = story.victim, story.found
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
