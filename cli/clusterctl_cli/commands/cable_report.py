"""`clusterctl cable report`: the fabric as one HTML page, offline."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click

from clusterctl.operations.documents import content
from clusterctl_cli.cabling_options import plan_option, sheet_option
from clusterctl_cli.options import FILE, gathered
from clusterctl_cli.text import echo

if TYPE_CHECKING:
    from clusterctl.cabling.pictures.matrix import Matrix
    from clusterctl.operations.fabric_report import FabricReport
    from clusterctl_cli.pictures.page import Sheet


@dataclass(frozen=True, slots=True, kw_only=True)
class CableReportOptions:
    """The options of `report`."""

    plan: tuple[Path, ...]
    sheet: str
    fabric: Path
    counters: tuple[Path, ...]
    seconds: float | None
    limits: str
    pairs: Path | None
    html: Path
    force: bool


@click.command("report")
@plan_option
@sheet_option
@click.option("--fabric", type=FILE, required=True, help="Output of ibnetdiscover or iblinkinfo, or a db_csv.")
@click.option(
    "--counters",
    type=FILE,
    multiple=True,
    help="A reading of ibqueryerrors, perfquery -x or a db_csv; two or more, in order of time.",
)
@click.option("--seconds", type=click.FloatRange(min=0, min_open=True), help="Time between two readings without times.")
@click.option("--limits", default="ndr", show_default=True, help="Fabric limits by name, or a file of your own.")
@click.option("--pairs", type=FILE, help='{"at_least": …, "pairs": [{"from": …, "to": …, "value": …}]}')
@click.option("--html", type=click.Path(dir_okay=False, path_type=Path), required=True, help="The file to write.")
@click.option("--force", is_flag=True, help="Replace the file if it is there.")
@click.pass_context
@gathered(CableReportOptions)
def report(ctx: click.Context, options: CableReportOptions) -> None:
    """Write one HTML page: the fabric by tier with bad links, findings by rack, racks as elevations, the ports of each
    switch, counters over time, and the matrix of pairs.

    Without --plan, the wiring rule is inferred from the fabric. The page needs nothing else: it can be mailed, printed,
    and read in grey or by keyboard. Exit code 0: nothing is wrong; 1: something is, or is not proven; 2: a file could
    not be read or understood.
    """
    from clusterctl.operations import fabric_report as operation
    from clusterctl.operations.documents import write_document
    from clusterctl.operations.fabric_files import PlanFiles
    from clusterctl_cli.pictures.page import page

    request = operation.FabricReportRequest(
        fabric=options.fabric,
        plan=PlanFiles(options.plan, options.sheet),
        counters=options.counters,
        seconds=options.seconds,
        limits=options.limits,
    )
    result = operation.run(request)
    given = (
        *(("the plan", one) for one in options.plan),
        ("the fabric", options.fabric),
        *(("counters", one) for one in options.counters),
    )
    sheet = _sheet(result, given, options.pairs)
    write_document(options.html, page(sheet), option="--html", force=options.force)
    echo(f"written: {options.html}", err=True)
    ctx.exit(result.exit_code)


def _sheet(result: FabricReport, given: Iterable[tuple[str, Path]], pairs: Path | None) -> Sheet:
    """Return all that the page shows; `given` are the files that it is made of."""
    from clusterctl.cabling.labels import plan_labels
    from clusterctl.cabling.pictures.geometry import draw
    from clusterctl.cabling.pictures.marks import marks
    from clusterctl.cabling.pictures.port_maps import elevations, port_maps
    from clusterctl.cabling.pictures.tiers import bands
    from clusterctl.cabling.pictures.timeline import timeline
    from clusterctl.operations.operation import current_time
    from clusterctl_cli.pictures.page import Sheet

    plan, fabric, verification, counters = result.plan, result.fabric, result.verification, result.counters
    found = marks(plan, fabric, verification, counters.health if counters else None)
    rows = bands(plan, fabric, verification, found)
    labels = plan_labels(plan, fabric, verification.names)
    return Sheet(
        now=current_time(),
        sources=tuple((what, file.name) for what, file in given),
        verification=verification,
        bands=rows,
        chart=draw(rows, found),
        port_maps=port_maps(rows, plan, verification, found, labels),
        racks=elevations(rows, plan),
        rules=result.rules,
        health=counters.health if counters else None,
        timeline=timeline(fabric.cables(), counters.readings, counters.moments, counters.labels) if counters else None,
        matrix=_matrix(pairs),
    )


def _matrix(pairs: Path | None) -> Matrix | None:
    from clusterctl.cabling.pictures.matrix import matrix, read_trial

    return matrix(read_trial(content(pairs), str(pairs))) if pairs is not None else None
