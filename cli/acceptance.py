"""The acceptance report: Markdown that can be read as it stands, and the same as JSON. Pure."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from datetime import datetime
from typing import Any

from clusterctl.cli.render import finding_json, node_json
from clusterctl.fleet.finding import Origin
from clusterctl.fleet.node import Stage, Verb
from clusterctl.fleet.state import NodeState


def acceptance_json(nodes: Sequence[NodeState], site: str, simulated: bool, now: datetime) -> dict[str, Any]:
    """`{"site":…, "simulated":…, "at":…, "counts":{stage: n}, "nodes":[…]}`."""
    return {
        "site": site,
        "simulated": simulated,
        "at": now.isoformat(),
        "counts": dict(Counter(node.stage.value for node in nodes)),
        "nodes": [node_json(node) | _proof(node) for node in nodes],
    }


def acceptance_text(nodes: Sequence[NodeState], site: str, simulated: bool, now: datetime) -> str:
    """Markdown: the result, what stopped nodes by rack with remedies, and what gold rests on."""
    gold = [node for node in nodes if node.stage is Stage.GOLD]
    stopped = [node for node in nodes if node.stopped_at is not None]
    rest = [node for node in nodes if node not in gold and node not in stopped]
    lines = [f"# Acceptance of {site}, {now:%Y-%m-%d %H:%M} UTC", ""]
    if simulated:
        lines += [
            "**A rehearsal: every piece of evidence is simulated. Nothing here says anything about hardware.**",
            "",
        ]
    lines += [f"{len(nodes)} nodes: {len(gold)} gold, {len(stopped)} stopped, {len(rest)} on their way.", ""]
    lines += _stopped_section(stopped)
    lines += _gold_section(gold)
    if rest:
        lines += ["## On their way", "", *(f"- {node.name}: {node.stage.value}" for node in rest), ""]
    return "\n".join(lines)


def _stopped_section(nodes: Sequence[NodeState]) -> list[str]:
    racks: dict[str, list[NodeState]] = defaultdict(list)
    for node in nodes:
        racks[node.location.rack or "location unknown"].append(node)
    lines = ["## Stopped, by rack", ""] if nodes else []
    for rack, members in sorted(racks.items()):
        lines += [f"### {rack}", ""]
        for node in sorted(members, key=lambda n: (n.location.unit or 0, n.name)):
            lines += _stopped_lines(node)
    return lines


def _stopped_lines(node: NodeState) -> list[str]:
    step = node.stopped_at.value if node.stopped_at else ""
    head = f"- **{node.name}** ({node.location}, serial {node.serial or 'unknown'}) {node.stage.value} at {step}"
    lines = [head]
    for finding in node.findings:
        part = f" {finding.subject}" + (f" serial {finding.serial}" if finding.serial else "")
        lines.append(f"  - {finding.check}{part}: {finding.cause}")
        if finding.expected:
            lines.append(
                f"    - measured {finding.measured} {finding.unit}, expected {finding.expected} {finding.unit}"
            )
        lines.append(f"    - **{finding.remedy}**")
        lines += [f"    - evidence {digest}" for digest in finding.evidence]
    return [*lines, ""]


def _gold_section(nodes: Sequence[NodeState]) -> list[str]:
    if not nodes:
        return []
    lines = ["## Gold", "", "| node | serial | since | suite | checks | warnings |", "|---|---|---|---|---|---|"]
    for node in nodes:
        burnin = node.reports.get(Verb.BURNIN.value)
        suite, checks = (burnin.suite, len(burnin.checks)) if burnin else ("", 0)
        warnings = "; ".join(
            f"{finding.check}: {finding.cause}"
            for report in node.reports.values()
            for finding in report.findings
            if finding.verdict.value == "warn"
        )
        since = f"{node.since:%Y-%m-%d %H:%M}" if node.since else ""
        lines.append(f"| {node.name} | {node.serial} | {since} | {suite} | {checks} | {warnings} |")
    return [*lines, ""]


def _proof(node: NodeState) -> dict[str, Any]:
    """What the node's standing rests on: each step's verdict, when, and where its evidence came from."""
    return {
        "reports": {
            step: {
                "verdict": report.verdict.value,
                "suite": report.suite,
                "at": node.reported_at[step].isoformat(),
                "simulated": Origin.SIMULATED in report.origins,
                "findings": [finding_json(finding) for finding in report.findings],
            }
            for step, report in node.reports.items()
        }
    }
