"""`clusterctl cable coverage`: which links a burn loaded, and how well they carried it, from recorded counters."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click

from clusterctl_cli.formats import DOCUMENTS, format_option
from clusterctl_cli.options import FILE, gathered

if TYPE_CHECKING:
    from clusterctl.operations.link_health import CoverageResult


@dataclass(frozen=True, slots=True, kw_only=True)
class CoverageOptions:
    """The options of `coverage`."""

    before: Path
    after: Path
    fabric: Path
    seconds: float | None
    limits: str
    as_json: bool


@click.command("coverage")
@click.option("--before", type=FILE, required=True, help="Counters while the burn ran: perfquery -x or db_csv.")
@click.option("--after", type=FILE, required=True, help="The same later, while it still ran.")
@click.option("--fabric", type=FILE, required=True, help="Output of ibnetdiscover or iblinkinfo.")
@click.option("--seconds", type=click.FloatRange(min=0, min_open=True), help="Time between the two readings.")
@click.option("--limits", default="ndr", show_default=True, help="Fabric limits by name, or a file of your own.")
@format_option(*DOCUMENTS)
@click.pass_context
@gathered(CoverageOptions)
def coverage(ctx: click.Context, options: CoverageOptions) -> None:
    """Judge each direction of each link by what passed it between two readings of the counters, during a burn.

    This is how coverage is known where switches route adaptively. Exit code 0: every direction was loaded and reached
    its limit; 1: some were not, or did not; 2: a file could not be read or understood.
    """
    from clusterctl.operations import link_health

    request = link_health.ReadingsRequest(
        before=options.before,
        after=options.after,
        fabric=options.fabric,
        seconds=options.seconds,
        limits=options.limits,
    )
    result = link_health.run_coverage(request)
    if options.as_json:
        _print_document(result)
    else:
        _print_for_people(result)
    ctx.exit(result.exit_code)


def _print_document(result: CoverageResult) -> None:
    from clusterctl_cli.formats import print_document

    document: dict[str, object] = {
        "verdict": result.verdict.value,
        "directions": len(result.directions),
        "loaded": result.loaded,
        "at_goal": result.at_goal,
        "goal": result.goal,
        "seconds": result.seconds,
        "limits": asdict(result.limits),
        "usual": [asdict(usual) for usual in result.usual],
        "links": [
            {
                "from": one.source,
                "to": one.target,
                "share": one.share,
                "verdict": one.verdict.value,
                "why": one.why,
            }
            for one in result.directions
        ],
    }
    print_document(document)


def _print_for_people(result: CoverageResult) -> None:
    from rich.text import Text

    from clusterctl_cli.cabling_face import wide_console

    console = wide_console()
    for one in sorted((one for one in result.directions if one.why), key=lambda one: -one.verdict.rank):
        what = f"{one.verdict.name} {one.source} → {one.target}: {one.why}"
        console.print(Text(what, style="yellow" if one.verdict.admits else "red"))
    if not result.usual:
        console.print(Text("too few links of a kind to compare them: judged by the limits alone"))
    for usual in result.usual:
        ways = "both ways at once" if usual.both_ways else "one way"
        console.print(Text(f"usual: {usual.share:.1f} % of {usual.gbps:g} Gb/s, {ways}"))
    counts = f"{result.loaded} of {len(result.directions)} directions were loaded"
    goal = f"{result.at_goal} reached the goal of {result.goal_text}"
    console.print(Text(f"{counts}, {goal}", style="green" if result.verdict.admits else "red"))
