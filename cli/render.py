"""What people read: nodes, reasons, progress. Pure: states in, text or tables out."""

from __future__ import annotations

import textwrap
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from rich.table import Table
from rich.text import Text

from clusterctl.fleet.finding import Evidence, Finding, Verdict
from clusterctl.fleet.node import Stage, Verb
from clusterctl.fleet.state import NodeState, Summary

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


def node_json(node: Summary | NodeState) -> dict[str, Any]:
    """The stable contract of `nodes --json`, one node."""
    return {
        "name": node.name,
        "stage": node.stage.value,
        "verdict": node.verdict.value,
        "since": node.since.isoformat() if node.since else None,
        "cause": node.cause,
        "remedy": node.remedy,
        "serial": node.serial,
        "bmc": node.bmc,
        "rack": node.location.rack,
        "unit": node.location.unit,
        "stopped_at": node.stopped_at.value if node.stopped_at else None,
    }


def columns(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Left-aligned columns, the last one free: thousands of rows in no time, where a drawn table takes seconds."""
    cells = [head, *rows]
    widths = [max(len(row[at]) for row in cells) for at in range(len(head) - 1)]
    return "\n".join(
        "  ".join([*(cell.ljust(width) for cell, width in zip(row, widths, strict=False)), row[-1]]).rstrip()
        for row in cells
    )


def nodes_text(nodes: Iterable[Summary], now: datetime) -> str:
    """One line a node."""
    return columns(
        ("NODE", "STAGE", "SINCE", "WHERE", "SERIAL", "WHY"),
        [
            (node.name, _stage(node), ago(node.since, now), str(node.location), node.serial or "-", brief(node.cause))
            for node in nodes
        ],
    )


def brief(cause: str) -> str:
    """A cause that fits beside other columns; `why` says it in full."""
    return cause if len(cause) <= BRIEF else f"{cause[: BRIEF - 1].rstrip()}…"


def _stage(node: Summary) -> str:
    held = node.stopped_at is not None and node.stage is not Stage.QUARANTINED
    return f"{node.stage.value} (held)" if held else node.stage.value


def counts(nodes: Iterable[Summary]) -> str:
    """`5 gold, 3 quarantined`."""
    tally = Counter(node.stage for node in nodes)
    return ", ".join(f"{tally[stage]} {stage.value}" for stage in reversed(Stage) if tally[stage]) or "no nodes"


def why_text(node: NodeState, evidence: Mapping[str, Evidence], now: datetime) -> Text:
    """Why the node is where it is, with the remedy and what it rests on."""
    text = Text()
    text.append(node.name, style="bold")
    text.append(f" ({node.location}, serial {node.serial or 'unknown'}) is ")
    text.append(node.stage.value, style=STYLES.get(node.stage, "bold"))
    text.append(f", since {ago(node.since, now)}.\n")
    if node.stopped_at is None:
        text.append(_onward(node))
        return text
    text.append(f"\nStopped at  {node.stopped_at.value} ({node.verdict.value})\n")
    findings = node.findings
    if not findings:
        text.append(f"Cause       {node.cause}\nRemedy      {node.remedy}\n")
    for finding in findings:
        text.append("\n")
        text.append_text(_finding(finding, evidence))
    if node.stopped_at.value in node.reports:
        followers = [f for f in node.reports[node.stopped_at.value].findings if f.root and not f.verdict.admits]
        for finding in followers:
            text.append(f"\nfollows from it: {finding.check} {finding.subject}: {finding.cause}")
    text.append(f"\nWhen mended: clusterctl release {node.name} --reason '…', then clusterctl bootstrap\n")
    return text


def finding_json(finding: Finding) -> dict[str, Any]:
    """One finding, as every `--json` gives it."""
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
    }


def _onward(node: NodeState) -> str:
    if node.next_verb is None:
        verdicts = ", ".join(f"{step} {report.verdict.value}" for step, report in node.reports.items())
        return f"It rests on: {verdicts}.\n"
    return f"Nothing keeps it back; the next step is {node.next_verb.value}.\n"


def _finding(finding: Finding, evidence: Mapping[str, Evidence]) -> Text:
    text = Text()
    rows = [
        ("Check", f"{finding.check} on {finding.subject}" + (f" (serial {finding.serial})" if finding.serial else "")),
        ("Cause", finding.cause),
        ("Measured", " ".join(part for part in (finding.measured, finding.unit) if part)),
        ("Expected", " ".join(part for part in (finding.expected, finding.unit) if part)),
        ("Remedy", finding.remedy),
    ]
    for label, value in rows:
        if value:
            style = "bold" if label in {"Cause", "Remedy"} else ""
            text.append(f"{label:<11} ")
            text.append(textwrap.fill(value, 100, subsequent_indent=" " * 12) + "\n", style=style)
    for digest in finding.evidence:
        item = evidence.get(digest)
        if item is not None:
            when = item.at.strftime("%Y-%m-%d %H:%M:%S UTC")
            text.append(f"Evidence    {digest[:12]}  {item.origin.value}  {when}  {item.where}: {item.source[:80]}\n")
    return text


def findings_table(findings: Sequence[Finding]) -> Table:
    """Findings of one report, worst first."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    for heading in ("verdict", "check", "subject", "what was seen"):
        table.add_column(heading, overflow="fold")
    for finding in sorted(findings, key=lambda f: -f.verdict.rank):
        verdict = Text(finding.verdict.value, style=VERDICT_STYLES[finding.verdict])
        table.add_row(verdict, finding.check, finding.subject, finding.cause)
    return table


def plan_text(nodes: Iterable[Summary]) -> str:
    """What bootstrap would do with each node."""
    rows = [(node.name, node.stage.value, *plan_words(node)) for node in nodes]
    return columns(("NODE", "STANDS AT", "WOULD DO", "DESTRUCTIVE"), rows)


def plan_words(node: Summary) -> tuple[str, str]:
    """(what would be done, what of it destroys something)."""
    if node.stage is Stage.QUARANTINED:
        return f"nothing: {node.cause}; clusterctl release it once mended", ""
    if node.next_verb is None:
        return "nothing: it is gold", ""
    verbs = list(Verb)[list(Verb).index(node.next_verb) :]
    return " → ".join(verb.value for verb in verbs), _destructive(node, verbs)


def _destructive(node: Summary, verbs: Sequence[Verb]) -> str:
    if Verb.INSTALL not in verbs:
        return ""
    disk = f"root disk {node.root_disk}" if node.root_disk else "the root disk that its SKU names"
    machine = f"serial {node.serial}" if node.serial else "once its serial is proven"
    return f"powers it on and off, overwrites {disk} ({machine})"


def lab_note(simulated: bool) -> str:
    """What follows every count of a rehearsal."""
    return "  (rehearsal lab: all evidence is simulated)" if simulated else ""


def node_head(node: NodeState) -> Text:
    """Who the node is, above its history."""
    text = Text(node.name, style="bold")
    text.append(f"  {node.stage.value}\n", style=STYLES.get(node.stage, ""))
    machine = f"{node.inventory.manufacturer} {node.inventory.model}" if node.inventory else "not yet identified"
    text.append(f"{machine}, serial {node.serial or 'unknown'}, {node.location}\n")
    text.append(f"BMC {node.bmc}, host {node.address or 'not installed'}, root disk {node.root_disk or 'unknown'}\n")
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
