"""From an outcome to the journal: evidence, report, the gate's decision, and the event that carries it out."""

from __future__ import annotations

from dataclasses import dataclass

from clusterctl.fleet.event import NewEvent, node_event
from clusterctl.fleet.finding import Finding, Report
from clusterctl.fleet.gate import Advance, Confirm, Decision, Hold, Policy, Quarantine, complete, decide
from clusterctl.fleet.node import Step
from clusterctl.fleet.payloads.node import NodeHeld, NodeQuarantined, ReportRecorded, StageAdvanced
from clusterctl.fleet.state import NodeState
from clusterctl.ports import Claim, Clock, Journal
from clusterctl.steps.executor.step import StepOutcome


@dataclass(frozen=True, slots=True)
class Recorder:
    """Writes outcomes; the only caller of the gate."""

    journal: Journal
    policy: Policy
    clock: Clock

    def record(self, step: Step, outcome: StepOutcome, claim: Claim) -> tuple[Decision, NodeState]:
        """Store the evidence, then report and decision in one append. Return the decision and the node's new state."""
        origins = frozenset(item.origin for item in outcome.evidence)
        report = Report(step.value, outcome.suite, outcome.findings, origins)
        report = complete(report, self.policy.required.get(step, frozenset()))
        self.journal.store(outcome.evidence)
        decision = decide(self.journal.state(outcome.node), report, self.policy, self.clock.now())
        digests = tuple(item.digest for item in outcome.evidence)
        recorded = node_event(outcome.node, ReportRecorded(report=report), digests)
        moved = _event(step, outcome, decision, report)
        self.journal.append([*outcome.facts, recorded, *moved], claim=claim)
        return decision, self.journal.state(outcome.node)


def _event(step: Step, outcome: StepOutcome, decision: Decision, report: Report) -> tuple[NewEvent, ...]:
    match decision:
        case Advance(to, verdict):
            return (node_event(outcome.node, StageAdvanced(to=to, verdict=verdict)),)
        case Hold(cause, remedy):
            held = NodeHeld(step=step, cause=cause, remedy=remedy, verdict=report.verdict)
            return (node_event(outcome.node, held),)
        case Quarantine(finding):
            return (node_event(outcome.node, _quarantine(step, finding), finding.evidence),)
        case Confirm():
            return ()


def _quarantine(step: Step, finding: Finding) -> NodeQuarantined:
    return NodeQuarantined(
        step=step,
        cause=finding.cause,
        remedy=finding.remedy,
        verdict=finding.verdict,
        check=finding.check,
        subject=finding.subject,
        serial=finding.serial,
    )
