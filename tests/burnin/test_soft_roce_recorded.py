"""What the load brought back from two virtual machines over soft-RoCE: the real perftest, recorded by us.

perftest 4.5+0.17 of Debian 12 over rdma_rxe of Linux 6.1, an MTU of 9000, in software emulation under load. The figure is
of no hardware.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from clusterctl.formats.infiniband.perftest import parse_bandwidth
from clusterctl_burnin.limits.methods import PairMethod
from clusterctl_burnin.loads.model import Participant, TrialOutcome
from clusterctl_burnin.loads.multi_node.ib_write_bw import pair, read
from clusterctl_burnin.probe import parse_readings
from tests.lab_data import lab_limits
from tests.paths import ROOT

RECORDED = Path(__file__).parent / "data/soft_roce"
TABLES = ROOT / "tests" / "formats/data/perftest"
MEMBERS = (Participant("node001", "10.177.128.1", ("rxe0",)), Participant("node002", "10.177.128.2", ("rxe0",)))
METHOD = PairMethod(message_bytes=65536, iterations=50, timeout_seconds=600)


def test_the_loads_own_answers_are_read() -> None:
    """One rail, both ends by the device's name, the client's bandwidth; what was run is what the load asks for."""
    answers = {m.name: parse_readings((RECORDED / f"{m.name}.json").read_text()) for m in MEMBERS}
    one = pair(*MEMBERS, METHOD, "ops")
    tried = read(one, answers, lab_limits("lab-metal"))
    (trial,) = tried.trials
    assert (trial.outcome, trial.value) == (TrialOutcome.PASSED, pytest.approx(0.015166))
    assert trial.lane == {"node001": "rxe0", "node002": "rxe0"}
    assert len(tried.evidence) == 2
    for member in MEMBERS:
        for word in answers[member.name].probes["ib_write_bw_rail0"].argv:
            assert word in one.commands[member.name].stdin.decode()


@pytest.mark.parametrize("role", ["server", "client"])
def test_the_real_table_is_read(role: str) -> None:
    """GIDs and an Ethernet link layer change nothing; both sides report the same row."""
    (row,) = parse_bandwidth((TABLES / f"ib_write_bw-4.5-rxe-{role}.txt").read_text())
    assert (row.message_bytes, row.iterations) == (65536, 50)
    assert (row.peak, row.average) == (pytest.approx(0.016741), pytest.approx(0.015166))
