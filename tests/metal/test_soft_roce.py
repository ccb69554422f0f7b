"""The burn-in's own ib_write_bw between two virtual machines: the real perftest, over soft-RoCE (rdma_rxe).

It proves the load's command line, its way to the hosts and its parser against real RDMA verbs. The figure is one of
emulated processors and proves nothing about any hardware: it is not judged.
"""

from __future__ import annotations

import shlex
from concurrent.futures import ThreadPoolExecutor

import pytest

from clusterctl_burnin.limits.methods import PairMethod
from clusterctl_burnin.loads.model import Participant, TrialOutcome
from clusterctl_burnin.loads.multi_node import ib_write_bw
from clusterctl_burnin.probe import Readings, parse_readings
from tests.lab_data import lab_limits
from tests.metal.install_kit import INSTALL_S, NODES, Installed, MetalSite
from tests.metal.metal_kit import needs_metal

pytestmark = [pytest.mark.lab, pytest.mark.soak, needs_metal, pytest.mark.timeout(INSTALL_S + 1200)]
DEVICE = "rxe0"
METHOD = PairMethod(message_bytes=65536, iterations=50, timeout_seconds=600)
SECONDS = 900.0
PREPARE = (
    "sudo apt-get -qq update",
    "sudo apt-get -qq -y --no-install-recommends install ibverbs-providers perftest >/dev/null",
    "sudo modprobe rdma_rxe",
    f"sudo rdma link add {DEVICE} type rxe netdev ib0",
)


@pytest.fixture(scope="module")
def metal(installed: Installed) -> MetalSite:
    """Both machines with a soft-RoCE device on their first rail, packages from the lab's own server."""
    assert installed.run.wait() == 0, installed.run.stderr
    with ThreadPoolExecutor(len(NODES)) as pool:
        list(pool.map(lambda node: installed.metal.ssh(node, " && ".join(PREPARE), seconds=SECONDS), NODES))
    return installed.metal


def test_the_load_measures_real_verbs(metal: MetalSite) -> None:
    """What the burn-in would send to each member, by the device's name; a trial with a bandwidth comes back."""
    server, client = (Participant(node, metal.lab.machine(node)["address"], (DEVICE,)) for node in NODES)
    one = ib_write_bw.pair(server, client, METHOD, "ops")

    def run(member: Participant) -> Readings:
        command = one.commands[member.name]
        return parse_readings(metal.ssh(member.name, shlex.join(command.argv), stdin=command.stdin, seconds=SECONDS))

    with ThreadPoolExecutor(2) as pool:
        answers = dict(zip(NODES, pool.map(run, (server, client)), strict=True))
    tried = ib_write_bw.read(one, answers, lab_limits("lab-metal"))
    (trial,) = tried.trials
    output = answers[client.name].probes["ib_write_bw_rail0"].stdout
    assert trial.outcome in (TrialOutcome.PASSED, TrialOutcome.SLOW), f"{trial}\n{output}"
    assert trial.value is not None
    assert trial.value > 0
    assert trial.lane == dict.fromkeys(NODES, DEVICE)
    assert "Link type       : Ethernet" in output, output  # the stand-in, which moves bytes over TCP, prints IB
    assert "GID:" in output, output
