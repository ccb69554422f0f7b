"""What people read: nodes, reasons, progress. Pure: states in, text or tables out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from rich.table import Table
from rich.text import Text

from clusterctl.fleet.decisions.waiver import Waiver, waiver_of
from clusterctl.fleet.finding import Finding, Verdict
from clusterctl.fleet.node import Stage, Step
from clusterctl.fleet.state import NodeState, NodeSummary
from clusterctl_cli.render_people import (
    hold_json,
    people_text,
    standing,
    waiver_json,
    waivers_brief,
)

BRIEF = 90

STYLES = {
    Stage.GOLD: "bold yellow",
    Stage.QUARANTINED: "bold red",
}
VERDICT_STYLES = {
    Verdict.PASS: "green",
    Verdict.WARN: "yellow",
    Verdict.INCONCLUSIVE: "magenta",
    Verdict.FAIL: "red",
    Verdict.NOT_APPLICABLE: "dim",
}


def node_json(node: NodeSummary | NodeState, now: datetime) -> dict[str, Any]:
    """The stable contract of `nodes --json`, one node."""
    cause, remedy = standing(node, now)
    return {
        "name": node.name,
        "stage": node.stage.value,
        "verdict": node.verdict.value,
        "since": node.since.isoformat() if node.since else None,
        "cause": cause,
        "remedy": remedy,
        "serial": node.serial,
        "bmc": node.bmc,
        "rack": node.location.rack,
        "unit": node.location.unit,
        "stopped_at": node.stopped_at.value if node.stopped_at else None,
        "stopped_by": node.stopped_by or None,
        "hold": hold_json(node.hold) if node.hold is not None and node.held(now) else None,
        "waivers": [waiver_json(waiver, now) for waiver in node.waivers],
    }


def columns(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Left-aligned columns, the last one free: thousands of rows in no time, where a drawn table takes seconds."""
    cells = [head, *rows]
    widths = [max(len(row[at]) for row in cells) for at in range(len(head) - 1)]
    return "\n".join(
        "  ".join([*(cell.ljust(width) for cell, width in zip(row, widths, strict=False)), row[-1]]).rstrip()
        for row in cells
    )


def nodes_text(nodes: Iterable[NodeSummary], now: datetime) -> str:
    """One line a node."""
    return columns(
        ("NODE", "STAGE", "SINCE", "WHERE", "SERIAL", "WHY"),
        [
            (
                node.name,
                _stage(node, now),
                ago(node.since, now),
                str(node.location),
                node.serial or "-",
                _why(node, now),
            )
            for node in nodes
        ],
    )


def left_alone(refused: Mapping[str, str]) -> list[str]:
    """Node name → who holds it, as one line for each holder."""
    by_holder: dict[str, list[str]] = {}
    for name, holder in sorted(refused.items()):
        by_holder.setdefault(holder, []).append(name)
    return [f"left alone: {', '.join(names)}: {holder}" for holder, names in by_holder.items()]


def brief(cause: str) -> str:
    """A cause that fits beside other columns; `why` says it in full."""
    return cause if len(cause) <= BRIEF else f"{cause[: BRIEF - 1].rstrip()}…"


def _why(node: NodeSummary, now: datetime) -> str:
    return brief("; ".join(part for part in (standing(node, now)[0], waivers_brief(node, now)) if part))


def _stage(node: NodeSummary, now: datetime) -> str:
    held = node.held(now) or (node.stopped_at is not None and node.stage is not Stage.QUARANTINED)
    return f"{node.stage.value} (held)" if held else node.stage.value


def counts(nodes: Iterable[NodeSummary]) -> str:
    """`5 gold, 3 quarantined`."""
    tally = Counter(node.stage for node in nodes)
    return ", ".join(f"{tally[stage]} {stage.value}" for stage in reversed(Stage) if tally[stage]) or "no nodes"


def finding_json(finding: Finding, waiver: Waiver | None = None) -> dict[str, Any]:
    """One finding, as every `--json` gives it; `waiver`: who answers for it, if anybody does."""
    return {
        "check": finding.check,
        "verdict": finding.verdict.value,
        "subject": finding.subject,
        "serial": finding.serial,
        "cause": finding.cause,
        "measured": finding.measured,
        "expected": finding.expected,
        "unit": finding.unit,
        "remedy": finding.remedy,
        "root": finding.root,
        "evidence": list(finding.evidence),
        "waived": str(waiver) if waiver is not None else None,
    }


def findings_table(findings: Sequence[Finding], waivers: Sequence[Waiver], now: datetime) -> Table:
    """Findings of one report, worst first; what is waived keeps its verdict and says so."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    for heading in ("verdict", "check", "subject", "what was seen"):
        table.add_column(heading, overflow="fold")
    for finding in sorted(findings, key=lambda f: -f.verdict.rank):
        verdict = Text(finding.verdict.value, style=VERDICT_STYLES[finding.verdict])
        waiver = waiver_of(finding, waivers, now)
        cause = f"{finding.cause} ({waiver})" if waiver is not None else finding.cause
        table.add_row(verdict, finding.check, Text(finding.subject), Text(cause))
    return table


def plan_text(nodes: Iterable[NodeSummary], now: datetime) -> str:
    """What bootstrap would do with each node."""
    rows = [(node.name, node.stage.value, *plan_words(node, now)) for node in nodes]
    return columns(("NODE", "STANDS AT", "WOULD DO", "DESTRUCTIVE"), rows)


def plan_words(node: NodeSummary, now: datetime) -> tuple[str, str]:
    """(what would be done, what of it destroys something)."""
    if node.hold is not None and node.held(now):
        return f"nothing: {node.hold}", ""
    if node.stage is Stage.RETIRED:
        return f"nothing: {node.cause}", ""
    if node.stage is Stage.QUARANTINED:
        return f"nothing: {node.cause}; clusterctl release it once mended", ""
    if node.next_step is None:
        return "nothing: it is gold", ""
    steps = list(Step)[list(Step).index(node.next_step) :]
    return " → ".join(step.value for step in steps), _destructive(node, steps)


def _destructive(node: NodeSummary, steps: Sequence[Step]) -> str:
    if Step.INSTALL not in steps:
        return ""
    disk = f"root disk {node.root_disk}" if node.root_disk else "the root disk that its SKU names"
    machine = f"serial {node.serial}" if node.serial else "once its serial is proven"
    return f"powers it on and off, overwrites {disk} ({machine})"


def lab_note(simulated: bool) -> str:
    """What follows every count of a rehearsal."""
    return "  (rehearsal lab: all evidence is simulated)" if simulated else ""


def node_head(node: NodeState, now: datetime) -> Text:
    """Who the node is, above its history."""
    text = Text(node.name, style="bold")
    text.append(f"  {node.stage.value}\n", style=STYLES.get(node.stage, ""))
    machine = f"{node.inventory.manufacturer} {node.inventory.model}" if node.inventory else "not yet identified"
    text.append(f"{machine}, serial {node.serial or 'unknown'}, {node.location}\n")
    text.append(f"BMC {node.bmc}, host {node.address or 'not installed'}, root disk {node.root_disk or 'unknown'}\n")
    if node.former_serials:
        text.append(f"before that the machine with serial {', '.join(node.former_serials)}\n")
    text.append_text(people_text(node, now))
    return text


def ago(then: datetime | None, now: datetime) -> str:
    """`3 min ago`."""
    if then is None:
        return "never"
    seconds = max(timedelta(0), now - then).total_seconds()
    for size, unit in ((86_400, "d"), (3600, "h"), (60, "min")):
        if seconds >= size:
            return f"{int(seconds // size)} {unit} ago"
    return f"{int(seconds)} s ago"
