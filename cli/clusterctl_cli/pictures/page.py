"""The fabric report as one HTML page that needs nothing else: no script, font or picture from elsewhere.

Its only script is the search. The page is complete without it, and its content security policy lets no other one run.
"""

from __future__ import annotations

import base64
import hashlib
from dataclasses import dataclass
from datetime import datetime
from importlib.resources import files

from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from clusterctl.cabling.explain.verify import CablingVerification
from clusterctl.cabling.health.judge import FabricHealth
from clusterctl.cabling.health.symptoms import span
from clusterctl.cabling.pictures import geometry
from clusterctl.cabling.pictures.finding_lines import lines_by_rack
from clusterctl.cabling.pictures.geometry import Chart
from clusterctl.cabling.pictures.marks import MarkKind
from clusterctl.cabling.pictures.matrix import Matrix
from clusterctl.cabling.pictures.port_maps import RACK_UNITS, Elevation, PortMap
from clusterctl.cabling.pictures.tiers import Band, State
from clusterctl.cabling.pictures.timeline import BAR_HEIGHT, BAR_WIDTH, Timeline


@dataclass(frozen=True, slots=True)
class Sheet:
    """All that the page shows. `sources`: what it was made of, by what for; `now` is UTC.

    `rules` are the inferred rules where no plan was given.
    """

    now: datetime
    sources: tuple[tuple[str, str], ...]
    verification: CablingVerification
    bands: tuple[Band, ...]
    chart: Chart
    port_maps: tuple[PortMap, ...] = ()
    racks: tuple[Elevation, ...] = ()
    rules: tuple[str, ...] | None = None
    health: FabricHealth | None = None
    timeline: Timeline | None = None
    matrix: Matrix | None = None


def page(sheet: Sheet) -> str:
    environment = Environment(
        loader=ChoiceLoader(
            [
                PackageLoader("clusterctl_cli"),
                PackageLoader("clusterctl_web"),
                PackageLoader("clusterctl_web", "static"),
            ]
        ),
        autoescape=True,  # what devices call themselves is foreign text
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["span"] = span
    script = (files("clusterctl_cli") / "templates/cable_report.js").read_text(encoding="utf-8")
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    tiles = [tile for band in sheet.bands for tile in band.tiles]
    racks = lines_by_rack(sheet.verification, sheet.health)
    return environment.get_template("cable_report.html.j2").render(
        sheet=sheet,
        racks=racks,
        findings=sum(len(lines) for _, lines in racks),
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
