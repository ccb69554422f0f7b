"""What a BMC cannot see is for the host's own tools to say: findings that wait for a later step.

Such a finding is INCONCLUSIVE and names the step whose check of the same name will settle it. It does not keep the node
from going there; it keeps it from gold until that step's report has the answer.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime

from clusterctl.fleet.finding import Finding, Report, Verdict
from clusterctl.fleet.state import NodeState


def waiting(finding: Finding) -> bool:
    return bool(finding.settled_by) and finding.verdict is Verdict.INCONCLUSIVE


def deferred(report: Report, *, tried: bool) -> Report:
    """For the decision after a step: what waits for a later one counts as a warning.

    What might be told when it is asked for again is asked for again first: it counts so only once `tried`.
    """

    def counts(finding: Finding) -> bool:
        return waiting(finding) and (tried or finding.deterministic)

    return _judged(report, counts, Verdict.WARN)


def settled(report: Report, node: NodeState, asked: datetime) -> Report:
    """For admission: what the later step has confirmed since `asked` counts as passed; all else stays what it is."""

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
