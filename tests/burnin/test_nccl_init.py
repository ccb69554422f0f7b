"""nccl_init: the program starts another one so many times, and the load judges what came of it."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from datetime import UTC, datetime

import pytest

from clusterctl.fleet.finding import Finding, Origin, Verdict
from clusterctl.fleet.finding_code import Code
from clusterctl.formats.nvidia.nccl_init import parse_nccl_starts
from clusterctl_burnin.loads.single_node.nccl_init import LOAD
from clusterctl_burnin.node.programs import nccl_init
from clusterctl_burnin.probe import ProbeResult, Readings, Status
from clusterctl_burnin.suites.suite import shipped_suite
from tests.burnin.kit import LIMITS, SKU, expected

NOW = datetime(2026, 1, 2, tzinfo=UTC)
WARNED = "node:1:1 [3] transport/p2p.cc:176 NCCL WARN Cuda failure 'peer mapping resources exhausted'"
"""As NCCL prints it (NVIDIA/nccl, src/include/checks.h)."""


def judged(document: object, *, rc: int | None = 0, status: Status = Status.OK, gpus: int = 2) -> Finding:
    text = document if isinstance(document, str) else json.dumps(document)
    result = ProbeResult(LOAD.name, ("nccl-init",), status, rc, text, "", NOW, 60.0)
    readings = Readings("h", "b", Origin.REAL, NOW, NOW, {LOAD.name: result})
    (finding,) = LOAD.check(LIMITS).findings(readings, expected(sku=replace(SKU, gpu_count=gpus)))
    return finding


def started(count: int, code: int | None = 0, output: str = "") -> dict[str, object]:
    failed = None if code == 0 else {"seconds": 60.0, "code": code, "output": output}
    return {"asked": 200, "seconds": [2.5] * count, "failed": failed}


@pytest.mark.parametrize(
    ("document", "verdict", "code"),
    [
        (started(200), Verdict.PASS, Code.PASSED),
        (started(137, 3, f"mpirun noise\n{WARNED}\n"), Verdict.FAIL, Code.LOAD_FAILED),
        (started(12, None), Verdict.FAIL, Code.LOAD_HUNG),
        (started(0, 1, "mpirun was unable to find the specified executable"), Verdict.INCONCLUSIVE, Code.NOT_MEASURED),
        (started(199), Verdict.INCONCLUSIVE, Code.NOT_MEASURED),
        ("[]", Verdict.INCONCLUSIVE, Code.OUTPUT_UNREADABLE),
    ],
)
def test_what_the_starts_show(document: object, verdict: Verdict, code: Code) -> None:
    """200 good ones pass; one that fails or hangs fails; what was not started or not counted proves nothing."""
    found = judged(document)
    assert (found.verdict, found.code) == (verdict, code)
    if code is Code.LOAD_FAILED:
        assert "start 138 of 200" in found.cause
        assert "peer mapping resources exhausted" in found.cause


def test_a_node_with_one_gpu() -> None:
    assert judged(started(200), gpus=1).verdict is Verdict.NOT_APPLICABLE


def run(capsys: pytest.CaptureFixture[str], count: int, seconds: float, script: str) -> tuple[int, str]:
    code = nccl_init.main([str(count), str(seconds), sys.executable, "-c", script])
    return code, capsys.readouterr().out


def test_the_program_counts_starts(capsys: pytest.CaptureFixture[str]) -> None:
    code, out = run(capsys, 3, 60, "print('well')")
    starts = parse_nccl_starts(out)
    assert (code, starts.asked, len(starts.seconds), starts.failed) == (0, 3, 3, None)


def test_the_program_ends_at_the_first_failure(capsys: pytest.CaptureFixture[str]) -> None:
    """The end of its output is kept."""
    _, out = run(capsys, 3, 60, f"import sys; print({WARNED!r}); sys.exit(3)")
    starts = parse_nccl_starts(out)
    assert starts.failed is not None
    assert (starts.seconds, starts.failed.code) == ((), 3)
    assert WARNED in starts.failed.output


def test_the_program_ends_one_that_hangs(capsys: pytest.CaptureFixture[str]) -> None:
    _, out = run(capsys, 3, 0.5, "import time; time.sleep(600)")
    failed = parse_nccl_starts(out).failed
    assert failed is not None
    assert failed.code is None


def test_the_soak_has_long_loads() -> None:
    """200 starts of NCCL, pairs of 15 minutes, and 12 to 24 hours of sums until something hangs."""
    soak = shipped_suite("soak")
    assert LOAD.name in soak.all_loads
    assert "hang_hunt" in soak.loads
    assert (soak.pair_seconds, soak.hang_seconds) == (900, 43_200)
    assert LIMITS.methods.nccl_init.starts == 200
    (probe,) = LOAD.probes(LIMITS, None)
    assert probe.argv[:3] == ("nccl-init", "200", "60")
    assert "localhost:8" in probe.argv
