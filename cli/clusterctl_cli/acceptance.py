"""The acceptance report: Markdown that can be read as it stands, and the same as JSON. Pure."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from clusterctl.fleet.decisions.waiver import waiver_of
from clusterctl.fleet.finding import Origin, Report, Verdict
from clusterctl.fleet.node import Stage, Step
from clusterctl.fleet.state import NodeState
from clusterctl.operations.json_documents import fault_json, finding_json, links_json, node_json, rma_json
from clusterctl.operations.reports import ReportOverview
from clusterctl_cli.render_fabric import faults_section, links_section
from clusterctl_cli.render_offenders import offenders_json, offenders_lines
from clusterctl_cli.render_rma import rma_line

REHEARSAL = "**A rehearsal: all evidence is simulated. This report proves nothing about hardware.**"


def acceptance_json(nodes: Sequence[NodeState], overview: ReportOverview) -> dict[str, Any]:
    """Return `{"site":…, "simulated":…, "at":…, "warnings":[…], "counts":{stage: n}, "fabric":[…], "links":{…},
    "offenders":{…}, "rmas":[…], "maintenance":[…], "nodes":[…]}`.
    """
    now = overview.now
    return {
        "site": overview.site,
        "simulated": overview.simulated,
        "at": now.isoformat(),
        "warnings": list(overview.unproven),
        "counts": dict(Counter(node.stage.value for node in nodes)),
        "fabric": [fault_json(fault) for fault in overview.faults],
        "links": links_json(overview.links[1]) if overview.links else None,
        "offenders": offenders_json(overview.offenders, {node.id: node.name for node in nodes}),
        "rmas": [rma_json(one, now) for one in overview.rmas],
        "maintenance": list(overview.plans),
        "nodes": [node_json(node, now) | _proof(node, now) for node in nodes],
    }


def acceptance_text(nodes: Sequence[NodeState], overview: ReportOverview) -> str:
    """Return Markdown: the result, by rack what stopped nodes and what is wrong with the fabric, with remedies, and the
    evidence of gold.
    """
    groups = _Groups.of(nodes, overview.now)
    names = {node.id: node.name for node in nodes}
    lines = [
        *_heading(overview),
        f"{len(nodes)} nodes: {groups.counts}.",
        "",
        *_stopped_section(groups.stopped),
        *faults_section(overview.faults),
        *links_section(overview.links),
        *_section("Repeat offenders", offenders_lines(overview.offenders, names)),
        *_section("Returned to vendors (RMA)", [rma_line(one, overview.now) for one in overview.rmas]),
        *_section("Rolling changes that are half done", overview.plans),
        *_gold_section(groups.gold, overview),
        *_section("Held by operators: in no pool", [f"{n.name} ({n.stage.value}): {n.hold}" for n in groups.held]),
        *_section("Retired", [f"{n.name} (serial {n.serial or 'none'}): {n.cause}" for n in groups.retired]),
        *_section("On their way", [f"{node.name}: {node.stage.value}" for node in groups.rest]),
    ]
    return "\n".join(lines)


@dataclass(frozen=True, slots=True)
class _Groups:
    """The nodes by how they stand. A held node may be stopped or retired, too; the other groups are apart."""

    held: tuple[NodeState, ...]
    gold: tuple[NodeState, ...]
    stopped: tuple[NodeState, ...]
    retired: tuple[NodeState, ...]
    rest: tuple[NodeState, ...]

    @classmethod
    def of(cls, nodes: Sequence[NodeState], now: datetime) -> _Groups:
        """Return the groups of these nodes."""
        return cls(
            held=_those(nodes, lambda node: node.held(now)),
            gold=_those(nodes, lambda node: node.stage is Stage.GOLD and not node.held(now)),
            stopped=_those(nodes, lambda node: node.stopped_at is not None),
            retired=_those(nodes, lambda node: node.stage is Stage.RETIRED),
            rest=_those(nodes, lambda node: _is_on_its_way(node, now)),
        )

    @property
    def counts(self) -> str:
        """The size of each group: `6 gold, 1 stopped, 1 on their way`."""
        counts = [f"{len(self.gold)} gold", f"{len(self.stopped)} stopped", f"{len(self.rest)} on their way"]
        counts += [f"{len(self.held)} held"] if self.held else []
        counts += [f"{len(self.retired)} retired"] if self.retired else []
        return ", ".join(counts)


def _those(nodes: Iterable[NodeState], condition: Callable[[NodeState], bool]) -> tuple[NodeState, ...]:
    return tuple(filter(condition, nodes))


def _is_on_its_way(node: NodeState, now: datetime) -> bool:
    return not node.held(now) and node.stopped_at is None and node.stage not in (Stage.GOLD, Stage.RETIRED)


def _heading(overview: ReportOverview) -> Iterator[str]:
    """Yield the title, and what must be known before the report is read."""
    yield from (f"# Acceptance of {overview.site}, {overview.now:%Y-%m-%d %H:%M} UTC", "")
    if overview.simulated:
        yield from (REHEARSAL, "")
    for notice in overview.unproven:
        yield from (f"**Not proven:** {notice}.", "")


def _section(heading: str, items: Sequence[str]) -> list[str]:
    return [f"## {heading}", "", *(f"- {item}" for item in items), ""] if items else []


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
    if not node.findings:
        stopped_by = f" ({node.stopped_by})" if node.stopped_by else ""
        lines += [f"  - {node.cause}{stopped_by}", f"    - **{node.remedy}**"]
    for finding in node.findings:
        part = f" {finding.subject}" + (f" serial {finding.serial}" if finding.serial else "")
        lines.append(f"  - {finding.check}{part}: {finding.cause}")
        if finding.figures:
            lines.append(f"    - {finding.figures}")
        lines.append(f"    - **{finding.remedy}**")
        lines += [f"    - evidence {digest}" for digest in finding.evidence]
    return [*lines, ""]


def _gold_section(nodes: Sequence[NodeState], overview: ReportOverview) -> list[str]:
    if not nodes:
        return []
    head = "| node | serial | since | suite | limits | checks | until | warnings |"
    lines = ["## Gold", "", head, "|---|---|---|---|---|---|---|---|"]
    for node in nodes:
        burnin = node.reports.get(Step.BURNIN.value)
        suite, checks = (burnin.suite, len(burnin.checks)) if burnin else ("", 0)
        warnings = "; ".join(_warnings(node, overview.now))
        since = f"{node.since:%Y-%m-%d %H:%M}" if node.since else ""
        until = _until(node, overview)
        cells = (node.name, node.serial, since, suite, _limits(burnin), checks, until, warnings)
        escaped = [str(cell).replace("|", "\\|") for cell in cells]
        lines.append(f"| {' | '.join(escaped)} |")
    return [*lines, ""]


def _limits(burnin: Report | None) -> str:
    """Return the short digests of the limits that its findings were judged by."""
    digests = {finding.limits for finding in burnin.findings if finding.limits} if burnin else set()
    return ", ".join(sorted(digest[:12] for digest in digests))


def _until(node: NodeState, overview: ReportOverview) -> str:
    """Return when its gold expires, or that it has."""
    at = node.reported_at.get(Step.BURNIN.value)
    if overview.expiry is None or at is None:
        return ""
    until = at + overview.expiry
    return f"{until:%Y-%m-%d}" if until >= overview.now else f"**expired {until:%Y-%m-%d}**"


def _warnings(node: NodeState, now: datetime) -> Iterator[str]:
    """Return what gold was given in spite of: warnings and waived findings, each with its verdict."""
    for finding in (finding for report in node.reports.values() for finding in report.findings):
        if finding.verdict is Verdict.WARN:
            yield f"{finding.check}: {finding.cause}"
        elif not finding.verdict.admits:
            waiver = waiver_of(finding, node.waivers, now)
            words = str(waiver) if waiver is not None else "no longer waived"
            yield f"{finding.check} of {finding.subject} is {finding.verdict.value} ({finding.cause}), {words}"


def _proof(node: NodeState, now: datetime) -> dict[str, Any]:
    """Return what the node's stage rests on: each step's verdict, its time and the origin of its evidence."""
    return {
        "reports": {
            step: {
                "verdict": report.verdict.value,
                "suite": report.suite,
                "at": node.reported_at[step].isoformat(),
                "simulated": Origin.SIMULATED in report.origins,
                "findings": [
                    finding_json(finding, waiver_of(finding, node.waivers, now)) for finding in report.findings
                ],
            }
            for step, report in node.reports.items()
        }
    }
