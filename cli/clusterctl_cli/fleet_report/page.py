"""The fleet report, and one node's sheet, as HTML that needs nothing else: no script, no font, no picture."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined

from clusterctl.cabling.health.symptoms import span
from clusterctl.operations.json_documents import cause_and_remedy
from clusterctl.operations.node_case import NodeCase
from clusterctl.operations.reports import FleetReport
from clusterctl_cli.fleet_report.pairs import pairs
from clusterctl_cli.fleet_report.strips import HEIGHT, WIDTH, stretches, strip
from clusterctl_cli.render_offenders import offenders_lines
from clusterctl_cli.text import ago

_STAMP = "%Y-%m-%d %H:%M"


def fleet_page(sheet: FleetReport) -> str:
    now = sheet.overview.now
    names = {node.id: node.name for node in sheet.nodes}
    return (
        _environment(now)
        .get_template("fleet_report.html.j2")
        .render(
            sheet=sheet,
            about=sheet.overview,
            now=now,
            cases=sheet.cases,
            pairs=pairs(sheet.pairs),
            lines=[(node, *cause_and_remedy(node, now)) for node in sheet.nodes],
            offenders=offenders_lines(sheet.overview.offenders, names),
        )
    )


def case_page(case: NodeCase, site: str, now: datetime, *, simulated: bool) -> str:
    return (
        _environment(now).get_template("node_sheet.html.j2").render(case=case, site=site, simulated=simulated, now=now)
    )


def _environment(now: datetime) -> Environment:
    environment = Environment(
        loader=ChoiceLoader(
            [
                PackageLoader("clusterctl_cli"),
                PackageLoader("clusterctl_web"),
                PackageLoader("clusterctl_web", "static"),
            ]
        ),
        autoescape=True,  # what machines print is foreign text
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    filters: dict[str, Callable[..., object]] = {
        "stamp": lambda at: at.strftime(_STAMP) if at else "",
        "strip": strip,
        "stretches": lambda moments: stretches(moments, now),
        "span": span,
        "ago": lambda at: ago(at, now),
    }
    environment.filters |= filters
    environment.globals |= {"strip_width": WIDTH, "strip_height": HEIGHT}
    return environment
