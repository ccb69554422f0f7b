"""Why a node is where it is, in plain words, with the remedy and what that rests on. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from rich.text import Text

from clusterctl.fleet.bmc.accounts import Rotation
from clusterctl.fleet.decisions.waiver import waiver_of
from clusterctl.fleet.finding import Digest, Finding
from clusterctl.fleet.hardware.parts import part_of
from clusterctl.fleet.node import Stage, Step
from clusterctl.fleet.state import NodeState
from clusterctl.operations.explanation import EvidenceSource, NodeExplanation
from clusterctl_cli.render import STYLES
from clusterctl_cli.render_people import people_text
from clusterctl_cli.text import ago, wrapped

_LABEL = 12
"""Columns of a label, below which its text is wrapped."""


def why_text(explanation: NodeExplanation, width: int | None) -> Text:
    """Return why the node is where it is, with the remedy and what it rests on; `width` as in `wrapped`."""
    node, now = explanation.node, explanation.at
    text = Text()
    text.append(node.name, style="bold")
    text.append(f" ({node.location}, serial {node.serial or 'unknown'}) is ")
    text.append(node.stage.value, style=STYLES.get(node.stage, "bold"))
    text.append(f", since {ago(node.since, now)}.\n")
    text.append_text(people_text(node, now, width))
    text.append(_password(node, explanation.password, now, width))
    for words in explanation.repeated:
        text.append(f"{wrapped(f'Again: {words}.', width)}\n", style="bold")
    if node.stopped_at is None:
        text.append(_onward(node, now))
        return text
    decided_by = f", decided by {node.stopped_by}" if node.stopped_by else ""
    text.append(f"\nStopped at  {node.stopped_at.value} ({node.verdict.value}){decided_by}\n")
    if not node.findings:
        text.append_text(_row("Cause", node.cause, width))
        text.append_text(_row("Remedy", node.remedy, width))
    for finding in node.findings:
        text.append("\n")
        text.append_text(_finding(finding, node, explanation.evidence, width))
        if (waiver := waiver_of(finding, node.waivers, now)) is not None:
            text.append_text(_row("Waived", str(waiver), width))
    for finding in _consequences(node, node.stopped_at):
        line = f"follows from it: {finding.check} {finding.subject}: {finding.cause}"
        text.append(f"\n{wrapped(line, width)}")
    after = f"After the repair: clusterctl release {node.name} --reason '…', then clusterctl bootstrap"
    text.append(f"\n{wrapped(after, width)}\n")
    return text


def _row(label: str, value: str, width: int | None, style: str = "") -> Text:
    return Text.assemble((wrapped(f"{label:<{_LABEL}}{value}", width, _LABEL), style), "\n")


def _consequences(node: NodeState, step: Step) -> list[Finding]:
    """Return the bad findings of a step's report that follow from another finding."""
    report = node.reports.get(step.value)
    return [finding for finding in report.findings if finding.root and not finding.verdict.admits] if report else []


def _password(node: NodeState, password: Rotation | None, now: datetime, width: int | None) -> str:
    if password is None:
        return ""
    owed = f"; the installer does not have it yet: clusterctl accounts rotate {node.name}" if password.owed else ""
    line = f"Its BMC's password was changed {ago(password.at, now)} (password {password.number}){owed}."
    return f"{wrapped(line, width)}\n"


def _onward(node: NodeState, now: datetime) -> str:
    if node.stage is Stage.RETIRED:
        return f"{node.cause}.\n"
    if node.held(now):
        return f"To lift the hold: clusterctl release {node.name} --reason '…'\n"
    if node.next_step is None:
        verdicts = ", ".join(f"{step} {report.verdict.value}" for step, report in node.reports.items())
        return f"It rests on: {verdicts}.\n"
    return f"Nothing keeps it back; the next step is {node.next_step.value}.\n"


def _where(finding: Finding, node: NodeState) -> str:
    """Return rack and unit, the slot of the part, and what the finding was seen at."""
    slot = part_of(node, finding).slot
    place = [str(node.location)] if node.location.rack else []
    return ", ".join((*place, *([f"slot {slot}"] if slot else []), *([finding.where] if finding.where else [])))


def _finding(finding: Finding, node: NodeState, evidence: Mapping[Digest, EvidenceSource], width: int | None) -> Text:
    text = Text()
    rows = [
        ("Check", f"{finding.check} on {finding.subject}" + (f" (serial {finding.serial})" if finding.serial else "")),
        ("Where", _where(finding, node)),
        ("Cause", finding.cause),
        ("Measured", str(finding.measured or "")),
        ("Expected", str(finding.expected or "")),
        ("Remedy", finding.remedy),
    ]
    for label, value in rows:
        if value:
            text.append_text(_row(label, value, width, "bold" if label in {"Cause", "Remedy"} else ""))
    for digest in finding.evidence:
        item = evidence.get(digest)
        if item is not None:
            when = item.at.strftime("%Y-%m-%d %H:%M:%S UTC")
            source = f"{digest[:12]}  {item.origin.value}  {when}  {item.where}: {item.source[:80]}"
            text.append_text(_row("Evidence", source, width))
    return text
