"""admit: the last step before gold. It reads the reports of the earlier steps; the gate decides by them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from clusterctl.fleet.finding import Finding, Verdict
from clusterctl.fleet.finding_code import Code
from clusterctl.fleet.node import Step
from clusterctl.fleet.state import NodeState
from clusterctl.ports import Deadline
from clusterctl.steps.executor.intent_log import IntentLog
from clusterctl.steps.executor.step import StepOutcome


class Admit:
    """Reports what the admission rests on; whether that suffices is the gate's decision."""

    step = Step.ADMIT
    minimum = 1
    linger_s = 0.0
    at_once = 1

    def run(self, nodes: Sequence[NodeState], intents: IntentLog, deadline: Deadline) -> Iterator[StepOutcome]:
        del intents, deadline  # nothing is changed outside the journal
        for node in nodes:
            reports = ", ".join(f"{step} {report.verdict.value}" for step, report in node.reports.items())
            verdict = Verdict.PASS if reports else Verdict.INCONCLUSIVE
            burnin = node.reports.get(Step.BURNIN.value)
            suite = burnin.suite if burnin else ""
            cause = f"rests on: {reports}" if reports else "no step has reported"
            yield StepOutcome(
                node.id,
                (
                    Finding(
                        check="admission",
                        verdict=verdict,
                        code=Code.PASSED if verdict.admits else Code.ADMISSION,
                        cause=cause,
                    ),
                ),
                suite=suite,
            )
