"""A waiver makes the gate take one bad finding for a warning, for a while; the finding stays what it is."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta

import pytest

from clusterctl.fleet.decisions.decision import revoke, waive
from clusterctl.fleet.decisions.waiver import NEVER, waived
from clusterctl.fleet.errors import UsageError
from clusterctl.fleet.finding import Finding, Origin, Report, Verdict
from clusterctl.fleet.finding_code import Code
from clusterctl.fleet.gate import Advance, Confirm, Decision, Hold, Policy, Quarantine, decide
from clusterctl.fleet.node import Stage
from clusterctl.fleet.state import NodeState
from tests.fleet.people import FINE, LATER, NOW, WARM, after, node, reported, stopped

POLICY = Policy()
UNKNOWN = Finding(
    check="nvlink", verdict=Verdict.INCONCLUSIVE, code=Code.NOT_MEASURED, subject="gpu 3", cause="nvidia-smi timed out"
)
FOLLOWS = Finding(
    check="pcie_width",
    verdict=Verdict.FAIL,
    code=Code.PCIE_LINK_POOR,
    subject="gpu 3",
    cause="no answer",
    root=WARM.key,
)


def judged(state: NodeState, *findings: Finding, now: datetime = NOW) -> Decision:
    return decide(state, Report("burnin", "bootstrap", findings, frozenset({Origin.REAL})), POLICY, now)


def with_waiver(*findings: Finding, check: str = "gpu_ecc", subject: str = "gpu 3") -> NodeState:
    """A node whose burn-in has found `findings`, one of them waived for 30 days."""
    bad = reported(node(Stage.CABLED), "burnin", *(findings or (WARM,)))
    return after(bad, waive(bad, check, subject, "the vendor calls it harmless", LATER).events)


def test_a_waived_failure_advances_as_a_warning() -> None:
    """The verdict of the whole is WARN, never PASS."""
    assert judged(node(Stage.CABLED), FINE, WARM) == Quarantine(WARM)
    assert judged(with_waiver(), FINE, WARM) == Advance(Stage.BURNED_IN, Verdict.WARN)


def test_an_unmeasured_finding_can_be_answered_for() -> None:
    """One check that cannot be measured, in addition to others that were."""
    assert judged(with_waiver(UNKNOWN, check="nvlink"), FINE, UNKNOWN) == Advance(Stage.BURNED_IN, Verdict.WARN)


def test_only_what_is_named_is_waived() -> None:
    """Another part, and another check, count as before."""
    other = replace(WARM, subject="gpu 4")
    assert judged(with_waiver(), FINE, WARM, other) == Quarantine(other)
    assert judged(with_waiver(), FINE, WARM, UNKNOWN) == Confirm(UNKNOWN.cause)
    assert judged(with_waiver(subject=""), FINE, WARM, other) == Advance(Stage.BURNED_IN, Verdict.WARN)


def test_what_follows_from_a_waived_finding_is_waived_with_it() -> None:
    """One cause is one decision; what follows from something else is not covered."""
    assert judged(with_waiver(), FINE, WARM, FOLLOWS) == Advance(Stage.BURNED_IN, Verdict.WARN)
    elsewhere = replace(UNKNOWN, verdict=Verdict.FAIL)
    assert judged(with_waiver(), FINE, WARM, elsewhere, replace(FOLLOWS, root=elsewhere.key)) == Quarantine(elsewhere)


def test_a_waiver_ends() -> None:
    """From its `until` on the finding is what it is."""
    state = with_waiver()
    assert judged(state, FINE, WARM, now=LATER - timedelta(seconds=1)) == Advance(Stage.BURNED_IN, Verdict.WARN)
    assert judged(state, FINE, WARM, now=LATER) == Quarantine(WARM)


def test_without_a_measurement_no_waiver_is_possible() -> None:
    """A report without one measured finding stays inconclusive, and so does an empty one."""
    state = with_waiver(UNKNOWN, check="nvlink")
    assert judged(state, UNKNOWN) == Confirm(UNKNOWN.cause)
    assert isinstance(judged(state), Confirm)


@pytest.mark.parametrize("check", NEVER)
def test_what_later_steps_rest_on_is_never_waived(check: str) -> None:
    """Neither by the command, nor by a waiver that has come into the journal some other way."""
    wrong = replace(WARM, check=check)
    bad = reported(node(Stage.SEEN), "burnin", wrong)
    with pytest.raises(UsageError, match=f"{check} is never waived"):
        waive(bad, check, "", "x", LATER)
    event = waive(reported(bad, "burnin", WARM), "gpu_ecc", "", "x", LATER).events[0]
    forged = after(bad, [replace(event, payload=replace(event.payload, check=check))])
    assert forged.waivers
    assert judged(forged, FINE, wrong) == Quarantine(wrong)


def test_the_recorded_report_keeps_its_verdict() -> None:
    """Reports and evidence are not touched; the gate's input has both."""
    state = with_waiver()
    assert state.reports["burnin"].findings == (WARM,)
    report = replace(state.reports["burnin"], findings=(WARM, FINE))
    (read, fine) = waived(report, state.waivers, NOW).findings
    assert (read.verdict, fine) == (Verdict.WARN, FINE)
    assert read.cause == (
        "waived by alice until 2026-02-01 00:00 UTC: the vendor calls it harmless (it is fail: 2 uncorrectable errors)"
    )


def admission(state: NodeState, now: datetime) -> Decision:
    for step in ("discover", "install", "configure", "cable"):
        state = reported(state, step, FINE)
    state = reported(state, "burnin", FINE, WARM)
    report = Report(
        "admit", "", (Finding(check="admission", verdict=Verdict.PASS, code=Code.PASSED),), frozenset({Origin.REAL})
    )
    return decide(state, report, replace(POLICY, max_age=timedelta(days=365)), now)


def test_admission_looks_at_the_waivers_again() -> None:
    """A waiver that has ended since burn-in keeps the node from gold, and is named."""
    assert admission(with_waiver(), NOW) == Advance(Stage.GOLD, Verdict.WARN)
    held = admission(with_waiver(), LATER)
    assert isinstance(held, Hold)
    assert held.cause == "burnin passed only by a waiver that has ended: gpu_ecc of gpu 3"
    assert isinstance(admission(node(Stage.BURNED_IN), NOW), Hold)


def test_a_revoked_waiver_counts_no_more() -> None:
    """All waivers of a check, or that of one part."""
    state = with_waiver()
    assert judged(after(state, revoke(state, "gpu_ecc", "GPU3", "no").events), FINE, WARM) == Quarantine(WARM)
    assert after(state, revoke(state, "gpu_ecc", "", "no").events).waivers == ()
    with pytest.raises(UsageError, match=r"no waiver of nvlink: gpu_ecc of gpu 3 waived by alice"):
        revoke(state, "nvlink", "", "no")


def test_a_second_waiver_of_the_same_finding_replaces_the_first() -> None:
    """It can be given again before it ends."""
    state = with_waiver()
    again = after(state, waive(state, "gpu_ecc", "gpu3", "still", LATER + timedelta(days=1)).events)
    assert [waiver.reason for waiver in again.waivers] == ["still"]


def test_only_what_was_found_is_waived() -> None:
    """A typing error and a blank cheque are refused, with what there is to waive."""
    bad = reported(node(Stage.CABLED), "burnin", FINE, WARM)
    with pytest.raises(UsageError, match=r"no bad finding|bad finding gpu_ec;.* gpu_ecc \(gpu 3\)"):
        waive(bad, "gpu_ec", "", "x", LATER)
    with pytest.raises(UsageError, match=r"gpu_ecc on gpu 4; bad ones: gpu_ecc \(gpu 3\)"):
        waive(bad, "gpu_ecc", "gpu 4", "x", LATER)
    with pytest.raises(UsageError, match="gpu_count"):
        waive(bad, "gpu_count", "", "x", LATER)


def test_a_stopped_node_has_the_way_to_go_on() -> None:
    """A waiver moves nothing by itself."""
    bad = stopped(reported(node(Stage.CABLED), "burnin", WARM), "burnin")
    order = waive(bad, "gpu_ecc", "", "x", LATER)
    assert "clusterctl release n1" in order.effect
    assert after(bad, order.events).stage is Stage.QUARANTINED
