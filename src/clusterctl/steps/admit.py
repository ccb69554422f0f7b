"""admit: the last look before gold. What it finds is in the journal already; the gate reads it there."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from clusterctl.fleet.finding import Finding, Verdict
from clusterctl.fleet.node import Step
from clusterctl.fleet.state import NodeState
from clusterctl.ports import Deadline
from clusterctl.steps.executor.step import IntentLog, Outcome


class Admit:
    """States which reports the admission rests on; whether they suffice is the gate's to decide."""

    step = Step.ADMIT
    minimum = 1
    linger_s = 0.0
    at_once = 1

    def run(self, nodes: Sequence[NodeState], acts: IntentLog, deadline: Deadline) -> Iterator[Outcome]:
        del acts, deadline  # nothing is changed outside the journal
        for node in nodes:
            reports = ", ".join(f"{step} {report.verdict.value}" for step, report in node.reports.items())
            verdict = Verdict.PASS if reports else Verdict.INCONCLUSIVE
            burnin = node.reports.get(Step.BURNIN.value)
            suite = burnin.suite if burnin else ""
            cause = f"rests on: {reports}" if reports else "no step has reported"
            yield Outcome(node.id, (Finding(check="admission", verdict=verdict, cause=cause),), suite=suite)
