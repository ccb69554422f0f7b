"""The gate: the only place that decides whether a node moves. Everyone else supplies evidence."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from clusterctl.fleet.decisions.waiver import NEVER, Waiver, waived
from clusterctl.fleet.durations import utc_text
from clusterctl.fleet.finding import Finding, Origin, Report, Verdict
from clusterctl.fleet.finding_code import Code
from clusterctl.fleet.node import Stage, Step
from clusterctl.fleet.state import NodeState


def waiting(finding: Finding) -> bool:
    return bool(finding.settled_by) and finding.verdict is Verdict.INCONCLUSIVE


def deferred(report: Report, *, tried: bool) -> Report:
    """Return the report for the decision after a step: what waits for a later step counts as a warning.

    What a second try might measure is tried a second time first: it counts as a warning only once `tried`.
    """

    def counts(finding: Finding) -> bool:
        return waiting(finding) and (tried or finding.deterministic)

    return _judged(report, counts, Verdict.WARN)


def settled(report: Report, node: NodeState, asked: datetime) -> Report:
    """Return the report for admission: what the later step has confirmed since `asked` counts as passed."""

    def confirmed(finding: Finding) -> bool:
        later, at = node.reports.get(finding.settled_by), node.reported_at.get(finding.settled_by)
        if not waiting(finding) or later is None or at is None or at < asked:
            return False
        answers = [answer.verdict for answer in later.findings if answer.check == finding.check]
        return bool(answers) and all(verdict in (Verdict.PASS, Verdict.WARN) for verdict in answers)

    return _judged(report, confirmed, Verdict.PASS)


def _judged(report: Report, counts: Callable[[Finding], bool], verdict: Verdict) -> Report:
    findings = tuple(replace(one, verdict=verdict) if counts(one) else one for one in report.findings)
    return replace(report, findings=findings)


@dataclass(frozen=True, slots=True)
class Policy:
    """What the site asks for.

    required    per step, the checks that its report must contain
    attempts    how often a step is tried before an unrepeatable failure or an unmeasured check stops the node
    simulated   True for a rehearsal: only then may simulated evidence lead to gold
    max_age     how old a step's report may be when the node is admitted
    """

    required: Mapping[Step, frozenset[str]] = field(default_factory=dict)
    attempts: int = 2
    simulated: bool = False
    max_age: timedelta = timedelta(days=7)


@dataclass(frozen=True, slots=True)
class Advance:
    to: Stage
    verdict: Verdict


@dataclass(frozen=True, slots=True)
class Confirm:
    """Run the step once more: a failure that may not repeat, or something unmeasured."""

    cause: str


@dataclass(frozen=True, slots=True)
class Hold:
    """The node stays where it is until a later run or an operator's decision."""

    cause: str
    remedy: str


@dataclass(frozen=True, slots=True)
class Quarantine:
    finding: Finding


Decision = Advance | Confirm | Hold | Quarantine


def complete(report: Report, required: frozenset[str]) -> Report:
    """Return the report with an INCONCLUSIVE finding for every required check that did not report.

    Where one failed that the others rest on (it cannot be waived), the missing ones follow from it.
    """
    silent = sorted(required - report.checks)
    rested_on = next((found.key for found in report.roots() if found.check in NEVER), "")
    findings = tuple(
        Finding(
            check=check,
            verdict=Verdict.INCONCLUSIVE,
            code=Code.DID_NOT_REPORT,
            cause=f"{check} did not report",
            remedy="run the step again; if it stays silent, look at the evidence of its probes",
            root=rested_on,
            deterministic=False,
        )
        for check in silent
    )
    return Report(report.step, report.suite, report.findings + findings, report.origins)


def decide(state: NodeState, report: Report, policy: Policy, now: datetime) -> Decision:
    """Decide what becomes of a node after a step reported. `report` is complete (see `complete`).

    What an operator waived counts as a warning while the waiver lasts, what a later step will measure until it does;
    the recorded report stays what it is.
    """
    step = Step(report.step)
    report = deferred(waived(report, state.waivers, now), tried=state.attempts >= policy.attempts)
    if not policy.simulated and report.origins - {Origin.REAL}:
        return Hold("the evidence is simulated", "point the site at real machines, or set simulated: true in site.yml")
    if report.verdict.admits:
        return _stale(state, policy, now) if step is Step.ADMIT else Advance(step.leads_to, report.verdict)
    root = _first_root(report)
    if root.verdict is Verdict.FAIL and (root.deterministic or state.attempts >= policy.attempts):
        return Quarantine(root)
    if state.attempts < policy.attempts:
        return Confirm(root.cause)
    return Hold(root.cause, root.remedy)


def _first_root(report: Report) -> Finding:
    """Return the worst root, repeatable ones first; an empty report is unmeasured."""
    roots = sorted(report.roots(), key=lambda f: (-f.verdict.rank, not f.deterministic))
    if roots:
        return roots[0]
    return Finding(
        check=report.step,
        verdict=Verdict.INCONCLUSIVE,
        code=Code.DID_NOT_REPORT,
        cause=f"{report.step} reported nothing",
        remedy="run it again",
    )


def _stale(state: NodeState, policy: Policy, now: datetime) -> Decision:
    """Decide about stale reports: gold needs a fresh one of every step, with real evidence at a real site."""
    verdicts = []
    for step in Step:
        if step is Step.ADMIT:
            continue
        recorded, at = state.reports.get(step.value), state.reported_at.get(step.value)
        if recorded is None or at is None:
            return Hold(f"{step.value} has no passing report", f"run clusterctl {step.value} on it")
        earlier = settled(waived(recorded, state.waivers, now), state, at)
        if not earlier.verdict.admits:
            return _unwaived(state, earlier, now)
        if (hold := _unfounded(step, earlier, policy) or _untimely(state, step, at, policy, now)) is not None:
            return hold
        verdicts.append(earlier.verdict)
    return Advance(Stage.GOLD, max(verdicts, key=lambda v: v.rank))


def _unfounded(step: Step, report: Report, policy: Policy) -> Hold | None:
    """Return a hold for a report without evidence, with evidence that is not real, or without a required check."""
    if not report.origins:
        return Hold(f"the {step.value} report rests on no evidence", f"run clusterctl {step.value} again")
    foreign = sorted(origin.value for origin in report.origins - {Origin.REAL})
    if foreign and not policy.simulated:
        remedy = f"run clusterctl {step.value} on the real machine"
        return Hold(f"the {step.value} report rests on {', '.join(foreign)} evidence", remedy)
    if missing := policy.required.get(step, frozenset()) - report.checks:
        return Hold(f"{step.value} never reported {', '.join(sorted(missing))}", f"run clusterctl {step.value}")
    return None


def _untimely(state: NodeState, step: Step, at: datetime, policy: Policy, now: datetime) -> Hold | None:
    """Return a hold for a report that is dated in the future or too old."""
    if at > now:
        remedy = f"correct the controller's clock, then run clusterctl {step.value} again"
        return Hold(f"the {step.value} report is dated in the future ({utc_text(at)})", remedy)
    if now - at > policy.max_age and not _admitted_on(state, at):
        return Hold(f"the {step.value} report is {(now - at).days} days old", f"run clusterctl {step.value} again")
    return None


def _admitted_on(state: NodeState, at: datetime) -> bool:
    """Return whether the node is revalidated from a later step on, and was gold before by a report of `at`."""
    return state.revalidation is not None and state.admitted_at is not None and at <= state.admitted_at


def _unwaived(state: NodeState, report: Report, now: datetime) -> Hold:
    """Return the hold for a step's report that does not admit (any more)."""
    unseen = next((finding for finding in report.findings if waiting(finding)), None)
    if unseen is not None and _first_root(report) == unseen:
        return Hold(f"{unseen.cause}, and {unseen.settled_by} has not measured it since", unseen.remedy)
    ended = [waiver for waiver in state.waivers if not waiver.active(now) and _matters(report, waiver)]
    if not ended:
        return Hold(f"{report.step} has no passing report", f"run clusterctl {report.step} on it")
    what = ", ".join(waiver.what for waiver in ended)
    return Hold(
        f"{report.step} passed only by a waiver that has ended: {what}",
        f"waive it again; or repair it, clusterctl quarantine {state.name} --step {report.step}, and release it",
    )


def _matters(report: Report, waiver: Waiver) -> bool:
    return any(waiver.names(finding) and not finding.verdict.admits for finding in report.findings)
