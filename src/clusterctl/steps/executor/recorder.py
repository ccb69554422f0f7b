"""From an outcome to the journal: evidence, report, the gate's decision, and the event that carries it out."""

from __future__ import annotations

from dataclasses import dataclass

from clusterctl.fleet.codec import report_to_data
from clusterctl.fleet.event import Kind, NewEvent
from clusterctl.fleet.finding import Report
from clusterctl.fleet.gate import Advance, Confirm, Decision, Hold, Policy, Quarantine, complete, decide
from clusterctl.fleet.node import Step
from clusterctl.fleet.state import NodeState
from clusterctl.ports import Claim, Clock, Journal
from clusterctl.steps.executor.step import Outcome, node_event


@dataclass(frozen=True, slots=True)
class Recorder:
    """Writes outcomes; the only caller of the gate."""

    journal: Journal
    policy: Policy
    clock: Clock

    def record(self, step: Step, outcome: Outcome, claim: Claim) -> tuple[Decision, NodeState]:
        """Store the evidence, then report and decision in one append. Return the decision and the node's new state."""
        origins = frozenset(item.origin for item in outcome.evidence)
        report = Report(step.value, outcome.suite, outcome.findings, origins)
        report = complete(report, self.policy.required.get(step, frozenset()))
        self.journal.store(outcome.evidence)
        decision = decide(self.journal.state(outcome.node), report, self.policy, self.clock.now())
        digests = tuple(item.digest for item in outcome.evidence)
        recorded = NewEvent("node", outcome.node, Kind.REPORT_RECORDED, {"report": report_to_data(report)}, digests)
        moved = _event(step, outcome, decision, report)
        self.journal.append([*outcome.facts, recorded, *moved], claim=claim)
        return decision, self.journal.state(outcome.node)


def _event(step: Step, outcome: Outcome, decision: Decision, report: Report) -> tuple[NewEvent, ...]:
    node = outcome.node
    match decision:
        case Advance(to, verdict):
            return (node_event(node, Kind.STAGE_ADVANCED, to=to.value, verdict=verdict.value),)
        case Hold(cause, remedy):
            data = {"step": step.value, "cause": cause, "remedy": remedy, "verdict": report.verdict.value}
            return (NewEvent("node", node, Kind.NODE_HELD, data),)
        case Quarantine(finding):
            data = {"step": step.value, "cause": finding.cause, "remedy": finding.remedy}
            data |= {"verdict": finding.verdict.value, "check": finding.check, "subject": finding.subject}
            data |= {"serial": finding.serial}
            return (NewEvent("node", node, Kind.NODE_QUARANTINED, data, finding.evidence),)
        case Confirm():
            return ()
