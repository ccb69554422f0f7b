"""Only the gate moves a node, and unmeasured is never healthy."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from clusterctl.fleet.decisions.waiver import Waiver
from clusterctl.fleet.finding import Finding, Origin, Report, Verdict, worst
from clusterctl.fleet.finding_code import Code
from clusterctl.fleet.gate import Advance, Confirm, Decision, Hold, Policy, Quarantine, complete, decide
from clusterctl.fleet.node import NodeId, RevalidationOrigin, Stage, Step
from clusterctl.fleet.state import NodeState, Revalidation

NOW = datetime(2026, 1, 2, tzinfo=UTC)
REAL = frozenset({Origin.REAL})
BROKEN = Finding(check="gpu_count", verdict=Verdict.FAIL, code=Code.GPU_COUNT, cause="7 GPUs", remedy="reseat GPU 3")
FLAKY = replace(BROKEN, check="install", deterministic=False)
UNKNOWN = Finding(
    check="nvlink", verdict=Verdict.INCONCLUSIVE, code=Code.NOT_MEASURED, cause="nvidia-smi timed out", remedy="look"
)
FINE = Finding(check="bmc", verdict=Verdict.PASS, code=Code.PASSED)


def judged(*findings: Finding, attempts: int = 1, step: str = "burnin", origins: frozenset[Origin] = REAL) -> Decision:
    report = Report(step, "bootstrap", findings, origins)
    return decide(NodeState(NodeId("n"), attempts=attempts), report, Policy(attempts=2), NOW)


def test_verdicts_are_ordered_so_that_unmeasured_is_worse_than_a_warning() -> None:
    """PASS < WARN < INCONCLUSIVE < FAIL, and the worst of nothing is INCONCLUSIVE."""
    assert worst([Verdict.PASS, Verdict.WARN]) is Verdict.WARN
    assert worst([Verdict.WARN, Verdict.INCONCLUSIVE]) is Verdict.INCONCLUSIVE
    assert worst([Verdict.INCONCLUSIVE, Verdict.FAIL, Verdict.PASS]) is Verdict.FAIL
    assert worst([]) is Verdict.INCONCLUSIVE
    assert worst([Verdict.NOT_APPLICABLE]) is Verdict.INCONCLUSIVE


def test_a_pass_or_a_warning_advances() -> None:
    """A node goes on with everything passed, and with a warning."""
    assert judged(FINE) == Advance(Stage.BURNED_IN, Verdict.PASS)
    assert judged(FINE, replace(FINE, check="x", verdict=Verdict.WARN)) == Advance(Stage.BURNED_IN, Verdict.WARN)


def test_a_firm_failure_quarantines_at_once() -> None:
    """What cannot come out otherwise is not tried twice."""
    assert judged(FINE, BROKEN, UNKNOWN) == Quarantine(BROKEN)


def test_a_failure_that_may_not_repeat_is_confirmed_first() -> None:
    """One confirming run precedes the quarantine."""
    assert judged(FLAKY) == Confirm(FLAKY.cause)
    assert judged(FLAKY, attempts=2) == Quarantine(FLAKY)


def test_unmeasured_is_tried_again_then_held() -> None:
    """A node whose check cannot be measured is neither healthy nor broken: it waits, with the reason."""
    assert judged(FINE, UNKNOWN) == Confirm(UNKNOWN.cause)
    assert judged(FINE, UNKNOWN, attempts=2) == Hold(UNKNOWN.cause, UNKNOWN.remedy)


def test_nothing_reported_never_advances() -> None:
    """An empty report holds the node."""
    assert isinstance(judged(attempts=2), Hold)


def test_a_missing_required_check_becomes_inconclusive() -> None:
    """A check that the suite lists and that did not report is INCONCLUSIVE, by name."""
    report = complete(Report("burnin", "bootstrap", (FINE,), REAL), frozenset({"bmc", "nvlink"}))
    assert [f.check for f in report.findings if f.verdict is Verdict.INCONCLUSIVE] == ["nvlink"]
    assert report.verdict is Verdict.INCONCLUSIVE


def test_a_silent_check_is_asked_again_and_the_report_stays_its_own() -> None:
    """The addition has its code, and that another run may come out otherwise; step, suite and origins stay."""
    report = complete(Report("burnin", "bootstrap", (FINE,), REAL), frozenset({"bmc", "nvlink"}))
    (silent,) = report.roots()
    assert (silent.code, silent.deterministic, silent.root) == (Code.DID_NOT_REPORT, False, "")
    assert "nvlink" in silent.cause
    assert silent.remedy
    assert (report.step, report.suite, report.findings[0], report.origins) == ("burnin", "bootstrap", FINE, REAL)


def test_of_two_equally_bad_roots_the_firm_one_counts() -> None:
    """A failure that may not repeat delays no quarantine by one that will, in whichever order they are reported."""
    assert judged(FLAKY, BROKEN) == judged(BROKEN, FLAKY) == Quarantine(BROKEN)


def test_a_report_of_nothing_names_its_step() -> None:
    """The step is tried again, then waits, with a cause and a remedy."""
    assert judged(step="cable") == Confirm("cable reported nothing")
    held = judged(step="cable", attempts=2)
    assert isinstance(held, Hold)
    assert held.cause == "cable reported nothing"
    assert held.remedy


@pytest.mark.parametrize(("verdict", "gold"), [(Verdict.PASS, True), (Verdict.WARN, True), (Verdict.FAIL, False)])
@pytest.mark.parametrize("later_s", [-1, 0, 1])
def test_what_a_later_step_confirms(verdict: Verdict, gold: bool, later_s: int) -> None:
    """A finding that waits for a later step counts once that step has measured it, at that moment or after it."""
    state = full(at=NOW - timedelta(hours=1))
    waits = replace(UNKNOWN, check="memory", settled_by="burnin")
    answer = replace(FINE, check="memory", verdict=verdict)
    reports = {
        **state.reports,
        "discover": Report("discover", "", (FINE, waits), REAL),
        "burnin": Report("burnin", "", (FINE, answer), REAL),
    }
    asked = state.reported_at["discover"]
    times = {**state.reported_at, "burnin": asked + timedelta(seconds=later_s)}
    decision = admission(replace(state, reports=reports, reported_at=times))
    assert isinstance(decision, Advance) is (gold and later_s >= 0)
    without = replace(state, reports={**reports, "burnin": Report("burnin", "", (FINE,), REAL)}, reported_at=times)
    held = admission(without)
    assert isinstance(held, Hold)
    assert "burnin has not measured it since" in held.cause
    assert held.remedy == waits.remedy


def test_each_hold_has_a_remedy() -> None:
    """Cause and remedy of every reason that keeps a node from gold."""
    real = full()
    burnin = real.reports["burnin"]
    old = replace(burnin, findings=(BROKEN,))
    states = [
        replace(real, reports={}),
        replace(real, reports={**real.reports, "burnin": old}),
        replace(real, reports={**real.reports, "burnin": replace(burnin, origins=frozenset())}),
        full(Origin.SIMULATED),
        full(at=NOW + timedelta(days=1)),
        full(at=NOW - timedelta(days=30)),
    ]
    decisions = [*map(admission, states), admission(real, required={Step.BURNIN: frozenset({"nvlink"})})]
    decisions.append(judged(FINE, origins=frozenset({Origin.SIMULATED})))
    for decision in decisions:
        assert isinstance(decision, Hold)
        assert decision.cause
        assert decision.remedy


def test_an_ended_waiver_is_named() -> None:
    """Gold that rests on a waiver ends with it: the hold names the waiver that ended, and no other."""
    state = full()
    failed = replace(state.reports["burnin"], findings=(replace(BROKEN, check="gpu_ecc"),))
    until = NOW - timedelta(days=1)
    ended = Waiver("gpu_ecc", "node", "spare ordered", "alice", NOW - timedelta(days=3), until)
    other = replace(ended, check="fan_speed")
    state = replace(state, name="node017", reports={**state.reports, "burnin": failed}, waivers=(ended, other))
    held = admission(state)
    assert isinstance(held, Hold)
    assert "gpu_ecc" in held.cause
    assert "fan_speed" not in held.cause
    assert "node017" in held.remedy
    lasting = replace(ended, until=NOW + timedelta(days=1))
    assert admission(replace(state, waivers=(lasting,))) == Advance(Stage.GOLD, Verdict.WARN)
    unrelated = replace(state, waivers=(replace(lasting, check="fan_speed"), other))
    assert isinstance(admission(unrelated), Hold)


def test_silence_follows_from_a_failure_that_all_rest_on() -> None:
    """A BMC that does not answer is one cause, not six; a check that can be waived explains no silence."""
    dead = replace(BROKEN, check="bmc", subject="bmc")
    report = complete(Report("discover", "", (dead,), REAL), frozenset({"bmc", "gpu_count", "identity"}))
    assert report.roots() == (dead,)
    waivable = replace(BROKEN, check="psu", subject="PS3")
    report = complete(Report("discover", "", (waivable,), REAL), frozenset({"gpu_count"}))
    assert [found.check for found in report.roots()] == ["psu", "gpu_count"]


def test_the_cause_is_the_root_not_its_consequence() -> None:
    """A finding that follows from another never names the quarantine."""
    follower = replace(BROKEN, check="pcie_width", cause="no link", root=BROKEN.key)
    assert judged(follower, BROKEN) == Quarantine(BROKEN)


def test_simulated_evidence_moves_nothing_on_a_real_site() -> None:
    """A rehearsal's evidence holds the node of a real site, however good it looks."""
    assert isinstance(judged(FINE, origins=frozenset({Origin.SIMULATED})), Hold)


def full(origin: Origin = Origin.REAL, at: datetime = NOW) -> NodeState:
    steps = [step for step in Step if step is not Step.ADMIT]
    reports = {step.value: Report(step.value, "", (FINE,), frozenset({origin})) for step in steps}
    return NodeState(NodeId("n"), attempts=1, reports=reports, reported_at={step.value: at for step in steps})


def admission(state: NodeState, **policy: object) -> Decision:
    report = Report("admit", "", (Finding(check="admission", verdict=Verdict.PASS, code=Code.PASSED),))
    return decide(state, report, replace(Policy(), **policy), NOW)  # type: ignore[arg-type]


def test_gold_needs_every_step() -> None:
    """All five steps reported, fresh and real: gold."""
    assert admission(full()) == Advance(Stage.GOLD, Verdict.PASS)


@pytest.mark.parametrize("step", [step for step in Step if step is not Step.ADMIT])
def test_no_gold_without_one_of_the_steps(step: Step) -> None:
    """Whichever step is missing, the node is not gold, and the step is named."""
    state = full()
    reports = {name: report for name, report in state.reports.items() if name != step.value}
    decision = admission(replace(state, reports=reports))
    assert isinstance(decision, Hold)
    assert step.value in decision.cause


def test_no_gold_on_old_simulated_or_partial_evidence() -> None:
    """Stale evidence, a lab's evidence, or a suite with a silent check: each holds with its reason."""
    old = admission(full(at=NOW - timedelta(days=8)))
    assert isinstance(old, Hold)
    assert "8 days old" in old.cause
    assert isinstance(admission(full(Origin.SIMULATED)), Hold)
    assert isinstance(admission(full(Origin.SIMULATED), simulated=True), Advance)
    partial = admission(full(), required={Step.BURNIN: frozenset({"bmc", "nvlink"})})
    assert isinstance(partial, Hold)
    assert "nvlink" in partial.cause


@pytest.mark.parametrize("step", [step for step in Step if step is not Step.ADMIT])
def test_no_gold_by_a_report_of_the_future(step: Step) -> None:
    """A report that is dated after now proves nothing, however little it is ahead; one of this very moment counts."""
    state = full()
    ahead = replace(state, reported_at={**state.reported_at, step.value: NOW + timedelta(microseconds=1)})
    decision = admission(ahead)
    assert isinstance(decision, Hold)
    assert f"the {step.value} report is dated in the future" in decision.cause
    assert isinstance(admission(ahead, simulated=True), Hold)


@pytest.mark.parametrize("step", [step for step in Step if step is not Step.ADMIT])
@pytest.mark.parametrize(
    ("origins", "gold", "rehearsed"),
    [
        (frozenset(), False, False),
        (frozenset({Origin.REAL}), True, True),
        (frozenset({Origin.SIMULATED}), False, True),
        (frozenset({Origin.REAL, Origin.SIMULATED}), False, True),
    ],
)
def test_gold_rests_on_evidence(step: Step, origins: frozenset[Origin], gold: bool, rehearsed: bool) -> None:
    """A report without evidence counts nowhere, one with simulated evidence, alone or not, in a rehearsal only."""
    state = full()
    report = replace(state.reports[step.value], origins=origins)
    state = replace(state, reports={**state.reports, step.value: report})
    assert isinstance(admission(state), Advance if gold else Hold)
    assert isinstance(admission(state, simulated=True), Advance if rehearsed else Hold)


def test_the_age_limit_of_a_report() -> None:
    """A report counts up to the site's age limit, and no moment longer."""
    limit = timedelta(days=3)
    assert isinstance(admission(full(at=NOW - limit), max_age=limit), Advance)
    assert isinstance(admission(full(at=NOW - limit - timedelta(microseconds=1)), max_age=limit), Hold)


REVALIDATION = Revalidation(RevalidationOrigin.OPERATOR, "a cable was replaced")
OLD = NOW - timedelta(days=30)


@pytest.mark.parametrize(
    ("revalidation", "admitted_at", "gold"),
    [
        (REVALIDATION, OLD, True),
        (REVALIDATION, OLD + timedelta(days=1), True),
        (REVALIDATION, OLD - timedelta(microseconds=1), False),
        (REVALIDATION, None, False),
        (None, OLD, False),
        (None, None, False),
    ],
)
def test_a_stale_report_counts_only_in_a_revalidation_of_what_it_admitted(
    revalidation: Revalidation | None, admitted_at: datetime | None, gold: bool
) -> None:
    """An old report of a step that is not repeated counts where the node is revalidated and was gold by this report."""
    state = replace(full(at=OLD), revalidation=revalidation, admitted_at=admitted_at)
    assert isinstance(admission(state), Advance if gold else Hold)
