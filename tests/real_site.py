"""What a real site makes of evidence: the same gate, with a policy that is not simulated."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

from clusterctl.fleet.finding import Evidence, Finding, Report, Verdict
from clusterctl.fleet.finding_code import Code
from clusterctl.fleet.gate import Hold, Policy, decide
from clusterctl.fleet.node import NodeId
from clusterctl.fleet.state import NodeState


def no_gold_on_a_real_site(step: str, evidence: Sequence[Evidence]) -> bool:
    """Return whether the gate holds a node of a real site, although each finding on this evidence passed."""
    findings = (Finding(check=step, verdict=Verdict.PASS, code=Code.PASSED),)
    report = Report(step, "bootstrap", findings, frozenset(item.origin for item in evidence))
    decision = decide(NodeState(NodeId("n"), attempts=1), report, Policy(), datetime.now(UTC))
    return isinstance(decision, Hold) and "simulated" in decision.cause
