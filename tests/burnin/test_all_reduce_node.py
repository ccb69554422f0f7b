"""all_reduce_node: what is run on one node, and what its answers mean."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from clusterctl.fleet.finding import Finding, Origin, Verdict
from clusterctl_burnin.limits.reading import shipped_limits
from clusterctl_burnin.loads.single_node.all_reduce_node import LOAD
from clusterctl_burnin.probe import ProbeResult, Readings, Status
from tests.burnin.kit import expected

LIMITS = shipped_limits("h100-sxm-ndr400")
NOW = datetime(2026, 1, 2, tzinfo=UTC)


def table(busbw: float, ranks: int = 8, wrong: int = 0) -> str:
    heads = "".join(f"#  Rank {i} Group 0 Pid 1 on h device {i} [0x1b] H100\n" for i in range(ranks))
    row = f" 17179869184 4294967296 float sum -1 68652 250.24 {busbw} {wrong} 68652 250.24 {busbw} 0\n"
    return f"{heads}{row}# Out of bounds values : {wrong} {'FAILED' if wrong else 'OK'}\n"


def judged(stdout: str, *, rc: int | None = 0, status: Status = Status.OK, stderr: str = "") -> Finding:
    result = ProbeResult(LOAD.name, ("mpirun",), status, rc, stdout, stderr, NOW, 60.0)
    readings = Readings("h", "b", Origin.REAL, NOW, NOW, {LOAD.name: result})
    (finding,) = LOAD.check(LIMITS).findings(readings, replace(expected(), limits=LIMITS))
    return finding


def test_one_rank_a_gpu_and_no_adapter() -> None:
    """On the node itself, at the size that the limit is for."""
    (probe,) = LOAD.probes(LIMITS, None)
    words = " ".join(probe.argv)
    assert "mpirun -np 8 --host localhost:8" in words
    assert "NCCL_IB_DISABLE=1" in words
    assert "-b 17179869184 -e 17179869184" in words


@pytest.mark.parametrize(
    ("stdout", "verdict", "words"),
    [
        (table(481), Verdict.PASS, "fast enough"),
        (table(366), Verdict.FAIL, "is slow"),
        (table(481, wrong=3), Verdict.FAIL, "3 values of the sum are wrong"),
        (table(481, ranks=7), Verdict.INCONCLUSIVE, "7 of 8 ranks"),
        ("nonsense", Verdict.INCONCLUSIVE, "no row"),
    ],
)
def test_a_node_has_its_verdict(stdout: str, verdict: Verdict, words: str) -> None:
    """A fast sum that is wrong is a failure; one of fewer GPUs proves nothing. What fails may not repeat."""
    found = judged(stdout)
    assert (found.verdict, found.deterministic) == (verdict, verdict is Verdict.PASS)
    assert words in found.cause


@pytest.mark.parametrize(
    ("stderr", "rc", "verdict"),
    [
        ("env: 'mpirun': No such file or directory", 127, Verdict.INCONCLUSIVE),
        ("h:1 NCCL WARN Cuda failure 'uncorrectable NVLink error detected'", 3, Verdict.FAIL),
    ],
)
def test_what_could_not_start_is_unmeasured(stderr: str, rc: int, verdict: Verdict) -> None:
    """And what started and failed is not."""
    found = judged("", rc=rc, stderr=stderr)
    assert found.verdict is verdict
    assert found.remedy
