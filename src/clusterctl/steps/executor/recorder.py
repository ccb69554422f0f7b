"""From an outcome to the journal: evidence, report, the gate's decision, and the event that carries it out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from clusterctl.fleet.errors import EnvironmentBrokenError
from clusterctl.fleet.event import NewEvent, node_event
from clusterctl.fleet.finding import Finding, Report
from clusterctl.fleet.gate import Advance, Confirm, Decision, Hold, Policy, Quarantine, complete, decide
from clusterctl.fleet.node import Step
from clusterctl.fleet.payloads.node import NodeHeld, NodeQuarantined, ReportRecorded, StageAdvanced
from clusterctl.fleet.state import NodeState
from clusterctl.ports import Append, Claim, Clock, Journal
from clusterctl.steps.executor.step import StepOutcome


@dataclass(frozen=True, slots=True)
class Recorder:
    """Writes outcomes; the only caller of the gate."""

    journal: Journal
    policy: Policy
    clock: Clock

    def record(self, step: Step, outcome: StepOutcome, claim: Claim) -> tuple[Decision, NodeState]:
        """Store the evidence, then report and decision in one append. Return the decision and the node's new state."""
        (recorded,) = self.record_each(step, [(outcome, claim)])
        if isinstance(recorded, Exception):
            raise recorded
        return recorded

    def record_each(
        self, step: Step, outcomes: Sequence[tuple[StepOutcome, Claim]]
    ) -> Sequence[tuple[Decision, NodeState] | Exception]:
        """Do what `record` does for the outcomes of several nodes; return what it returns or raises, for each.

        Raise `EnvironmentBrokenError` where the journal does not work.
        """
        try:
            self.journal.store(item for outcome, _ in outcomes for item in outcome.evidence)
            before = self.journal.states_of([outcome.node for outcome, _ in outcomes])
            decided = [self._decided(step, outcome, before[outcome.node]) for outcome, _ in outcomes]
        except EnvironmentBrokenError:
            raise
        except Exception as error:  # noqa: BLE001 — one node's data: alone, each has its own
            if len(outcomes) == 1:
                return [error]
            return [found for one in outcomes for found in self.record_each(step, [one])]
        appends = [Append(events, claim) for (_, events), (_, claim) in zip(decided, outcomes, strict=True)]
        written = self.journal.append_each(appends)
        after = self.journal.states_of([outcome.node for outcome, _ in outcomes])
        return [
            events if isinstance(events, Exception) else (decision, after[outcome.node])
            for (decision, _), (outcome, _), events in zip(decided, outcomes, written, strict=True)
        ]

    def _decided(self, step: Step, outcome: StepOutcome, state: NodeState) -> tuple[Decision, Sequence[NewEvent]]:
        """Return the gate's decision, and the events that record it."""
        origins = frozenset(item.origin for item in outcome.evidence)
        report = Report(step.value, outcome.suite, outcome.findings, origins)
        report = complete(report, self.policy.required.get(step, frozenset()))
        decision = decide(state, report, self.policy, self.clock.now())
        digests = tuple(item.digest for item in outcome.evidence)
        recorded = node_event(outcome.node, ReportRecorded(report=report), digests)
        return decision, [*outcome.facts, recorded, *_event(step, outcome, decision, report)]


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
