"""What a BMC cannot see does not stop a node on its way to the tools that can, and never reaches gold unseen."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from clusterctl.fleet.finding import Finding, Origin, Report, Verdict
from clusterctl.fleet.finding_code import Code
from clusterctl.fleet.gate import Advance, Confirm, Decision, Hold, Policy, Quarantine, decide
from clusterctl.fleet.hardware.part_health import for_the_host
from clusterctl.fleet.node import NodeId, Stage
from clusterctl.fleet.state import NodeState

NOW = datetime(2026, 1, 2, tzinfo=UTC)
REAL = frozenset({Origin.REAL})
FINE = Finding(check="bmc", verdict=Verdict.PASS, code=Code.PASSED)
NONE_LISTED = for_the_host("gpu_count", "the BMC lists no GPU at all", certain=True)
NOT_REPORTED = for_the_host("gpu_count", "the BMC does not report its GPUs", certain=False)
ALL_THERE = Finding(check="gpu_count", verdict=Verdict.PASS, code=Code.PASSED)
STEPS = ("install", "configure", "cable")


def discovered(*findings: Finding, attempts: int = 1) -> Decision:
    return decide(NodeState(NodeId("n"), attempts=attempts), Report("discover", "", findings, REAL), Policy(), NOW)


def admitted(*burnin: Finding, asked: datetime = NOW - timedelta(hours=2)) -> Decision:
    """What becomes at the end of a node whose BMC listed no GPU."""
    reports = {step: Report(step, "", (FINE,), REAL) for step in STEPS}
    reports |= {"discover": Report("discover", "", (FINE, NONE_LISTED), REAL)}
    reports |= {"burnin": Report("burnin", "", (FINE, *burnin), REAL)}
    times = dict.fromkeys(reports, NOW - timedelta(hours=1)) | {"discover": asked}
    state = NodeState(NodeId("n"), reports=reports, reported_at=times)
    return decide(
        state,
        Report("admit", "", (Finding(check="admission", verdict=Verdict.PASS, code=Code.PASSED),), REAL),
        Policy(),
        NOW,
    )


def test_a_machine_with_a_bmc_that_lists_no_gpu_goes_on() -> None:
    """With a warning, at once: asking such a BMC again is of no use."""
    assert discovered(FINE, NONE_LISTED) == Advance(Stage.DISCOVERED, Verdict.WARN)


def test_what_could_not_be_read_is_asked_for_again_first() -> None:
    """A BMC that stumbled may report the second time; one that does not then does not stop the node."""
    assert discovered(FINE, NOT_REPORTED) == Confirm(NOT_REPORTED.cause)
    assert discovered(FINE, NOT_REPORTED, attempts=2) == Advance(Stage.DISCOVERED, Verdict.WARN)


def test_only_what_a_later_step_measures_is_put_off() -> None:
    """Another unmeasured finding still holds the node, and a failed one still stops it."""
    unmeasured, failed = (
        Finding(check="psu", verdict=Verdict.INCONCLUSIVE, code=Code.NOT_MEASURED),
        Finding(check="drives", verdict=Verdict.FAIL, code=Code.PART_UNHEALTHY),
    )
    assert isinstance(discovered(NONE_LISTED, unmeasured, attempts=2), Hold)
    assert discovered(NONE_LISTED, failed) == Quarantine(failed)


def test_gold_once_the_host_has_shown_them_all() -> None:
    """The burn-in's own check of the same name settles it."""
    assert admitted(ALL_THERE) == Advance(Stage.GOLD, Verdict.PASS)


@pytest.mark.parametrize(
    "burnin",
    [
        (),
        (Finding(check="hca_count", verdict=Verdict.PASS, code=Code.PASSED),),
        (replace(ALL_THERE, verdict=Verdict.NOT_APPLICABLE),),
    ],
    ids=["nothing", "another-check", "not-applicable"],
)
def test_never_gold_where_neither_saw_them(burnin: tuple[Finding, ...]) -> None:
    """The node is held, and the finding has what is missing."""
    decision = admitted(*burnin)
    assert isinstance(decision, Hold)
    assert decision.cause == "the BMC lists no GPU at all, and burnin has not measured it since"


def test_an_answer_from_before_the_question_does_not_count() -> None:
    """GPUs that a burn-in saw before the BMC lost sight of them must be seen again."""
    assert isinstance(admitted(ALL_THERE, asked=NOW - timedelta(minutes=5)), Hold)
