"""Text for operators: nodes, reasons, progress. Pure: states in, text or tables out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING

from clusterctl.fleet.decisions.waiver import Waiver, waiver_of
from clusterctl.fleet.finding import Finding, Verdict
from clusterctl.fleet.node import Stage
from clusterctl.fleet.state import NodeState, NodeSummary
from clusterctl.operations.json_documents import cause_and_remedy, fault_json, links_json, node_json
from clusterctl.operations.operation import current_time
from clusterctl_cli.formats import Format, asked, print_document
from clusterctl_cli.render_fabric import faults_text, links_text
from clusterctl_cli.render_people import people_text, waivers_brief
from clusterctl_cli.text import ago, columns, echo, terminal_width

if TYPE_CHECKING:
    from rich.table import Table
    from rich.text import Text

    from clusterctl.operations.bootstrap import RunResult
    from clusterctl.operations.context import SiteContext
    from clusterctl.operations.plan import PlanResult

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


def nodes_text(nodes: Iterable[NodeSummary], now: datetime) -> str:
    """Return one row per node; the cause is whole, wrapped where a terminal is narrow. `wide` has more columns."""
    wide = asked() is Format.WIDE
    more = ("SERIAL", "SKU", "BMC", "ADDRESS") if wide else ()
    rows = [
        (
            *(node.name, _stage(node, now), ago(node.since, now), str(node.location)),
            *((node.serial or "-", node.sku or "-", node.bmc or "-", node.address or "-") if wide else ()),
            _why(node, now),
        )
        for node in nodes
    ]
    return columns(("NODE", "STAGE", "SINCE", "WHERE", *more, "WHY"), rows, width=None if wide else terminal_width())


def left_alone(refused: Mapping[str, str]) -> list[str]:
    """Return one line for each claim owner, from node name → claim owner."""
    by_holder: dict[str, list[str]] = {}
    for name, holder in sorted(refused.items()):
        by_holder.setdefault(holder, []).append(name)
    return [f"left alone: {', '.join(names)}: {holder}" for holder, names in by_holder.items()]


def _why(node: NodeSummary, now: datetime) -> str:
    return "; ".join(part for part in (cause_and_remedy(node, now)[0], waivers_brief(node, now)) if part)


def _stage(node: NodeSummary, now: datetime) -> str:
    held = node.held(now) or (node.stopped_at is not None and node.stage is not Stage.QUARANTINED)
    return f"{node.stage.value} (held)" if held else node.stage.value


def counts(nodes: Iterable[NodeSummary]) -> str:
    """Return `5 gold, 3 quarantined`."""
    tally = Counter(node.stage for node in nodes)
    return ", ".join(f"{tally[stage]} {stage.value}" for stage in reversed(Stage) if tally[stage]) or "no nodes"


def findings_table(findings: Sequence[Finding], waivers: Sequence[Waiver], now: datetime) -> Table:
    """Return the findings of one report, worst first. A waived finding keeps its verdict and a mark."""
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False, header_style="bold")
    for heading in ("verdict", "check", "subject", "what was seen"):
        table.add_column(heading, overflow="fold")
    for finding in sorted(findings, key=lambda f: -f.verdict.rank):
        verdict = Text(finding.verdict.value, style=VERDICT_STYLES[finding.verdict])
        waiver = waiver_of(finding, waivers, now)
        cause = f"{finding.cause} ({waiver})" if waiver is not None else finding.cause
        table.add_row(verdict, finding.check, Text(finding.subject), Text(cause))
    return table


def plan_text(plan: PlanResult, width: int | None = None) -> str:
    """Return what bootstrap would do with each node; on a terminal with what it destroys in the last column."""
    rows = [(one.node.name, one.node.stage.value, one.steps, one.destroys) for one in plan.nodes]
    if width is None:
        return columns(("NODE", "STAGE", "WOULD DO", "DESTROYS"), rows)
    joined = [(*start, f"{steps}; destructive: {destroys}" if destroys else steps) for *start, steps, destroys in rows]
    return columns(("NODE", "STAGE", "WOULD DO"), joined, width=width)


def print_run(context: SiteContext, result: RunResult, *, as_json: bool) -> None:
    """Print where the nodes stand after a run: `{"nodes", "left_alone", "fabric", "links"}`."""
    for line in left_alone(dict(result.skipped)):
        echo(line, err=True)
    if as_json:
        now = current_time()
        nodes = [node_json(node, now) for node in result.nodes]
        fabric = [fault_json(fault) for fault in result.faults]
        links = links_json(result.links)
        print_document({"nodes": nodes, "left_alone": dict(result.skipped), "fabric": fabric, "links": links})
    else:
        _print_run_text(context, result)


def _print_run_text(context: SiteContext, result: RunResult) -> None:
    if not result.nodes:
        echo("no node stands before this step; clusterctl nodes shows where they are", err=True)
        return
    echo(nodes_text(result.nodes, current_time()))
    echo(f"\n{counts(result.nodes)}{lab_note(context.site.settings.simulated)}")
    stopped = [node.name for node in result.nodes if node.stopped_at is not None]
    if stopped:
        echo(f"clusterctl why {stopped[0]} shows why, and what to do.")
    if result.faults:
        echo(f"\n{faults_text(result.faults)}")
    if result.links is not None:
        echo(f"\n{links_text(result.links)}")


def lab_note(simulated: bool) -> str:
    """Return the mark that follows every count of a rehearsal."""
    return "  (rehearsal lab: all evidence is simulated)" if simulated else ""


def node_head(node: NodeState, now: datetime) -> Text:
    """Return the node's identity, printed above its history."""
    from rich.text import Text

    text = Text(node.name, style="bold")
    text.append(f"  {node.stage.value}\n", style=STYLES.get(node.stage, ""))
    machine = f"{node.inventory.manufacturer} {node.inventory.model}" if node.inventory else "not yet identified"
    text.append(f"{machine}, serial {node.serial or 'unknown'}, {node.location}\n")
    text.append(
        f"BMC {node.bmc or 'none'}, host {node.address or 'not installed'}, root disk {node.root_disk or 'unknown'}\n"
    )
    if node.former_serials:
        text.append(f"before that the machine with serial {', '.join(node.former_serials)}\n")
    text.append_text(people_text(node, now, terminal_width()))
    return text
