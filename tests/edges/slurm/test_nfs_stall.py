"""A stalled NFS between kernels: two hosts that save to a server that hangs. It is the storage, and no host is accused."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from clusterctl.fleet.blame import Certainty, Failure, Layer
from clusterctl.jobs.attribution import JobAction
from clusterctl.operations.job_why import WhyRequest, run
from lab.tests.lab_kit import eventually
from tests.edges.slurm.nfs_machines import Kernel, Machine, fetch_kernel, missing, nfs_machines
from tests.ports import reserve_port

pytestmark = [
    pytest.mark.lab,
    pytest.mark.soak,
    pytest.mark.skipif(bool(missing()), reason=f"needs {missing()}"),
    pytest.mark.timeout(3600),
]
MINUTES = 60.0


@pytest.fixture(scope="module")
def kernel(tmp_path_factory: pytest.TempPathFactory) -> Kernel:
    found = fetch_kernel(tmp_path_factory.mktemp("kernel"))
    if found is None:
        pytest.skip("Debian's archive is out of reach")
    return found


@pytest.fixture
def machines(kernel: Kernel, tmp_path: Path) -> Iterator[tuple[Machine, list[Machine]]]:
    with nfs_machines(kernel, tmp_path, ("n1", "n2"), reserve_port("127.0.0.1")) as found:
        yield found


def test_a_server_that_hangs_is_the_storage_and_no_host(
    machines: tuple[Machine, list[Machine]], tmp_path: Path
) -> None:
    """What the kernels of both hosts log is enough: a hang, storage, proven; the remedy drains no host."""
    server, clients = machines
    assert eventually(lambda: all("it has saved" in one.console for one in clients), 30 * MINUTES), [
        one.console[-1500:] for one in (server, *clients)
    ]
    saved = [len(one.console) for one in clients]
    server.freeze()
    assert eventually(lambda: all("not responding" in one.console for one in clients), 30 * MINUTES), [
        one.console[-1500:] for one in clients
    ]
    assert eventually(
        lambda: all("stack-of dd" in one.console[at:] for one, at in zip(clients, saved, strict=True)), 10 * MINUTES
    )
    logs = tmp_path / "logs"
    for one in clients:
        (logs / one.name).mkdir(parents=True)
        (logs / one.name / "kernel.log").write_text(one.kernel_log)
        print(*(line for line in one.console.splitlines() if "nfs" in line or "rpc_" in line), sep="\n")
    (logs / "job.json").write_text(json.dumps({"version": 1, "job": "1", "state": "FAILED"}))

    cause = run(WhyRequest(logs=logs)).attribution.cause

    assert (cause.failure, cause.layer, cause.certainty) == (Failure.HANG, Layer.STORAGE, Certainty.PROVEN)
    assert (cause.rule, cause.action, cause.suspects) == ("shared_storage", JobAction.WAIT, ())
