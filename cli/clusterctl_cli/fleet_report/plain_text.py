"""The report as text: Markdown, and plain columns for a terminal. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime

from clusterctl.fleet.reporting.figures import ReportFigure
from clusterctl.fleet.state import summarise
from clusterctl.operations.json_documents import cause_and_remedy
from clusterctl.operations.node_case import CaseExhibit, Charge, NodeCase
from clusterctl.operations.reports import FleetReport
from clusterctl_cli.acceptance import REHEARSAL
from clusterctl_cli.fleet_report.pairs import Pairs, pairs
from clusterctl_cli.render import counts
from clusterctl_cli.render_fabric import faults_text
from clusterctl_cli.render_offenders import offenders_lines
from clusterctl_cli.text import brief, columns, paragraph

SLOW_SHOWN = 20
BAD_SHOWN = 3


def figures_rows(figures: Sequence[ReportFigure]) -> list[tuple[str, ...]]:
    """Return rows of metric, SKU, nodes, lowest, median, highest, expected, what did not pass."""
    return [
        (
            f"{one.check} [{one.unit}]",
            one.sku,
            str(one.nodes),
            f"{one.lowest:.5g}",
            f"{one.median:.5g}",
            f"{one.highest:.5g}",
            one.bound.range if one.bound else "several",
            _bad(one),
        )
        for one in figures
    ]


FIGURES_HEAD = ("METRIC", "SKU", "NODES", "LOWEST", "MEDIAN", "HIGHEST", "EXPECTED", "DID NOT PASS")


def _bad(figure: ReportFigure) -> str:
    bad = figure.bad
    shown = [f"{v.node}{'' if v.subject == 'node' else f' {v.subject}'} {v.value:g}" for v in bad[:BAD_SHOWN]]
    more = [f"and {len(bad) - BAD_SHOWN} more"] if len(bad) > BAD_SHOWN else []
    return ", ".join([*shown, *more]) or "-"


def fleet_text(sheet: FleetReport) -> str:
    """Return for a terminal: stages, stopped nodes with part and remedy, offenders, figures, slow rails."""
    about = sheet.overview
    names = {node.id: node.name for node in sheet.nodes}
    offenders = offenders_lines(about.offenders, names)
    measured = pairs(sheet.pairs)
    parts = [
        f"{about.site}, {about.now:%Y-%m-%d %H:%M} UTC: {counts([summarise(node) for node in sheet.nodes])}",
        "A rehearsal: all evidence is simulated." if about.simulated else "",
        *(f"Not proven: {notice}." for notice in about.unproven),
        _stopped_text(sheet),
        "\n  ".join(["repeat offenders:", *offenders]) if offenders else "",
        faults_text(about.faults) if about.faults else "",
        columns(FIGURES_HEAD, figures_rows(sheet.figures)) if sheet.figures else "",
        _pairs_text(measured) if measured else "",
    ]
    return "\n\n".join(filter(None, parts))


def _stopped_text(sheet: FleetReport) -> str:
    """Return the stopped nodes as a table, and how many it leaves out."""
    parts = []
    if sheet.cases:
        rows = [row for case in sheet.cases for row in _case_rows(case, sheet.overview.now)]
        parts.append(columns(("STOPPED", "WHERE", "CHECK", "PART", "PART SERIAL", "MEASURED", "WHAT TO DO"), rows))
    if sheet.omitted:
        parts.append(f"{sheet.omitted} more are stopped: clusterctl nodes lists them.")
    return "\n\n".join(parts)


def _case_rows(case: NodeCase, now: datetime) -> Iterator[tuple[str, ...]]:
    node = case.node
    for charge in case.charges:
        found = charge.finding
        measured = str(found.measured or "-")
        serial = charge.part.serial or "-"
        yield (
            *(node.name, str(node.location), found.check, charge.part.subject, serial, brief(measured)),
            found.remedy,
        )
    if not case.charges:
        yield node.name, str(node.location), "-", "-", "-", "-", ": ".join(filter(None, cause_and_remedy(node, now)))


def _pairs_text(pairs: Pairs) -> str:
    head = f"ib_write_bw: {pairs.measured} measurements read, {len(pairs.slow)} below {pairs.at_least:g} Gb/s"
    rows = [(one.source, one.target, str(one.rail), one.device, f"{one.value:.1f}") for one in pairs.slow[:SLOW_SHOWN]]
    more = f"\nand {len(pairs.slow) - SLOW_SHOWN} more" if len(pairs.slow) > SLOW_SHOWN else ""
    return head + ("\n" + columns(("FROM", "TO", "RAIL", "DEVICE", "GB/S"), rows) + more if rows else "")


def fleet_markdown(acceptance: str, sheet: FleetReport) -> str:
    """Return the acceptance report, then the figures and the slow rails."""
    lines = [acceptance.rstrip("\n"), ""]
    if sheet.figures:
        lines += ["## Distributions", "", *_table([head.lower() for head in FIGURES_HEAD], figures_rows(sheet.figures))]
    if (measured := pairs(sheet.pairs)) is not None:
        slow = [(o.source, o.target, str(o.rail), o.device, f"{o.value:.1f}") for o in measured.slow]
        count = f"{measured.measured} measurements read, {len(slow)} below {measured.at_least:g} Gb/s."
        lines += ["## Pairs", "", count, ""]
        lines += _table(("from", "to", "rail", "device", "Gb/s"), slow) if slow else []
    return "\n".join(lines)


def case_markdown(case: NodeCase, site: str, now: datetime, *, simulated: bool) -> str:
    """Return one node's sheet, fit to be handed to its vendor."""
    node = case.node
    lines = [f"# {case.machine}, serial {node.serial or 'unknown'}", ""]
    lines += [f"{node.name} of {site}, {node.location}; {now:%Y-%m-%d %H:%M} UTC.", ""]
    if simulated:
        lines += [REHEARSAL, ""]
    if node.stopped_at is None:
        lines += [f"{node.stage.value}, not stopped: there is nothing to claim.", ""]
    else:
        since = f" since {node.since:%Y-%m-%d %H:%M} UTC" if node.since else ""
        lines += [f"{node.stage.value}: stopped at {node.stopped_at.value} ({node.verdict.value}){since}.", ""]
        lines += [paragraph(node.cause), "", f"**{node.remedy}**", ""] if not case.charges else []
    for charge in case.charges:
        lines += [*_charge_lines(charge), ""]
    lines += ["## Time line (UTC)", ""]
    lines += [f"{case.earlier} earlier events are left out.", ""] if case.earlier else []
    lines += [f"- {moment.at:%Y-%m-%d %H:%M} {moment.text}" for moment in case.moments] or [
        "The journal has no event of it."
    ]
    return "\n".join([*lines, ""])


def _charge_lines(charge: Charge) -> Iterator[str]:
    found, part = charge.finding, charge.part
    yield f"## {found.verdict.name} {found.check}: {part.subject}"
    yield from ("", paragraph(found.cause), "")
    yield from (f"- {label}: {value}" for label, value in _facts(charge) if value)
    for item in charge.exhibits:
        yield from _exhibit_lines(item)
    if not charge.exhibits:
        yield ""
        yield "The journal no longer has its raw output." if found.evidence else "It rests on no raw output of its own."


def _facts(charge: Charge) -> list[tuple[str, str]]:
    """Return what is known of a finding; an empty text is unknown."""
    found, part = charge.finding, charge.part
    return [
        ("Part", ", ".join(filter(None, (part.subject, part.slot and f"slot {part.slot}", charge.model)))),
        ("Part's serial", part.serial or "not reported by the machine"),
        ("Measured", str(found.measured or "")),
        ("Expected", str(found.expected or "")),
        *(("Limit", f"{one.name} {one.value} {one.unit} (source: {one.source})") for one in charge.limits),
        ("Judged by", charge.judged_by),
        ("What to do", found.remedy),
    ]


def _exhibit_lines(item: CaseExhibit) -> Iterator[str]:
    """Yield a piece of evidence: when and where it was read, the command and its output."""
    origin = ", simulated" if item.simulated else ""
    yield ""
    yield f"At {item.where}, {item.at:%Y-%m-%d %H:%M} UTC{origin}, evidence {item.digest[:12]}:"
    yield ""
    yield from (f"    {line}" for line in (f"$ {item.command}", *item.excerpt.split("\n")))


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    cells = [[cell.replace("|", "\\|") for cell in row] for row in rows]
    return [f"| {' | '.join(row)} |" for row in (head, ["---"] * len(head), *cells)] + [""]
