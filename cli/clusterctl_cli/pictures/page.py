"""The fabric report as one HTML page that needs nothing else: no script, font or picture from elsewhere.

Its only script is the search. The page is complete without it, and its content security policy lets no other one run.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from importlib.resources import files
from itertools import groupby

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from clusterctl.cabling.explain.explanation import Explanation, FaultKind
from clusterctl.cabling.explain.verify import Verification
from clusterctl.cabling.health.findings import HealthFinding
from clusterctl.cabling.health.judge import Health
from clusterctl.cabling.health.symptoms import span
from clusterctl.fleet.finding import Verdict
from clusterctl_cli.pictures import geometry
from clusterctl_cli.pictures.geometry import Chart
from clusterctl_cli.pictures.marks import MarkKind
from clusterctl_cli.pictures.matrix import Matrix
from clusterctl_cli.pictures.port_maps import RACK_UNITS, Elevation, PortMap
from clusterctl_cli.pictures.tiers import Band, State
from clusterctl_cli.pictures.timeline import BAR_HEIGHT, BAR_WIDTH, Timeline

_VERDICTS = {
    FaultKind.NAMES_DIFFER: Verdict.WARN,
    FaultKind.NAMES_UNPROVEN: Verdict.INCONCLUSIVE,
    FaultKind.NO_RULE: Verdict.INCONCLUSIVE,
}


@dataclass(frozen=True, slots=True)
class Line:
    """A finding of either kind, as the page lists it."""

    rack: str
    verdict: str
    kind: str
    cause: str
    action: str
    links: int


@dataclass(frozen=True, slots=True)
class Sheet:
    """All that the page shows. `sources`: what it was made of, by what for; `now` is UTC.

    `rules` are the inferred rules where no plan was given.
    """

    now: datetime
    sources: tuple[tuple[str, str], ...]
    verification: Verification
    bands: tuple[Band, ...]
    chart: Chart
    port_maps: tuple[PortMap, ...] = ()
    racks: tuple[Elevation, ...] = ()
    rules: tuple[str, ...] | None = None
    health: Health | None = None
    timeline: Timeline | None = None
    matrix: Matrix | None = None


def page(sheet: Sheet) -> str:
    environment = Environment(
        loader=PackageLoader("clusterctl_cli"),
        autoescape=True,  # what devices call themselves is foreign text
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["span"] = span
    script = (files("clusterctl_cli") / "templates/cable_report.js").read_text(encoding="utf-8")
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    tiles = [tile for band in sheet.bands for tile in band.tiles]
    lines = sorted(_lines(sheet), key=lambda line: (not line.rack, line.rack))
    return environment.get_template("cable_report.html.j2").render(
        sheet=sheet,
        racks=[(rack, list(found)) for rack, found in groupby(lines, key=lambda line: line.rack)],
        findings=len(lines),
        troubled=[tile for tile in tiles if tile.state not in (State.FINE, State.TOUCHED)],
        touched=[tile for tile in tiles if tile.state is State.TOUCHED],
        mark_kinds=list(MarkKind),
        states=list(State),
        tile=geometry.TILE,
        bar=(BAR_WIDTH, BAR_HEIGHT),
        rack_units=RACK_UNITS,
        script=Markup(script),  # our own file, no foreign text  # noqa: S704
        script_hash=digest,
    )


def _lines(sheet: Sheet) -> Iterable[Line]:
    yield from map(_cabling, sheet.verification.explanations)
    if sheet.health is not None:
        yield from map(_health, sheet.health.findings)


def _cabling(found: Explanation) -> Line:
    kind = found.kind.value.replace("_", " ")
    verdict = _VERDICTS.get(found.kind, Verdict.FAIL)
    return Line(found.rack, verdict.name, kind, found.cause, found.action, found.links)


def _health(found: HealthFinding) -> Line:
    kind = found.kind.value.replace("_", " ")
    return Line(found.rack, found.verdict.name, kind, found.cause, found.action, found.links)
