"""`clusterctl cable coverage`: which links a burn loaded, and how well they carried it, from recorded counters."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import click

from clusterctl.operations.documents import as_usage
from clusterctl_cli.formats import DOCUMENTS, format_option
from clusterctl_cli.options import FILE

if TYPE_CHECKING:
    from clusterctl.cabling.burn.verdicts import BurnVerdict, LoadVerdict
    from clusterctl.fleet.fabric.limits import FabricLimits
    from clusterctl.fleet.fabric.topology import PortId

_Label = Callable[["PortId"], str]


@click.command("coverage", short_help="Judge which links a burn loaded, and how well.")
@click.option("--before", type=FILE, required=True, help="Counters while the burn ran: perfquery -x or db_csv.")
@click.option("--after", type=FILE, required=True, help="The same later, while it still ran.")
@click.option("--fabric", type=FILE, required=True, help="Output of ibnetdiscover or iblinkinfo.")
@click.option("--seconds", type=click.FloatRange(min=0, min_open=True), help="Time between the two readings.")
@click.option("--limits", default="ndr", show_default=True, help="Fabric limits by name, or a file of your own.")
@format_option(*DOCUMENTS)
@click.pass_context
def coverage(
    ctx: click.Context,
    *,
    before: Path,
    after: Path,
    fabric: Path,
    seconds: float | None,
    limits: str,
    as_json: bool,
) -> None:
    """Judge each direction of each link by what passed it between two readings of the counters, during a burn.

    This is how coverage is known where switches route adaptively. Exit code 0: every direction was loaded and reached
    its limit; 1: some were not, or did not; 2: a file could not be read or understood.
    """
    from clusterctl.cabling.burn.verdicts import (
        coverage_from_counters,
        judge_burn,  # here, not above: keeps --help fast
    )
    from clusterctl.cabling.health.findings import fabric_labels
    from clusterctl.cabling.health.symptoms import Window
    from clusterctl.operations.fabric_files import fabric_in, limits_named, moments, reading

    figures, given = limits_named(limits), fabric_in(fabric)
    with as_usage():
        first = reading(before, given)[1]
        seen, last = reading(after, given)
    window = Window(first, last, moments((before, after), (first, last), seconds)[-1], figures)
    found = judge_burn(coverage_from_counters(seen, window), figures)
    label = fabric_labels(seen, None).plain
    if as_json:
        _print_document(found, figures, window.seconds, label)
    else:
        _print_for_people(found, figures, label)
    ctx.exit(0 if found.verdict.admits else 1)


def _print_document(found: BurnVerdict, limits: FabricLimits, seconds: float, label: _Label) -> None:
    from clusterctl_cli.formats import print_document

    document: dict[str, object] = {
        "verdict": found.verdict.value,
        "directions": len(found.directions),
        "loaded": found.loaded,
        "at_goal": found.at_goal,
        "goal": limits.value("burn_goal"),
        "seconds": seconds,
        "limits": {"name": limits.name, "digest": limits.digest},
        "usual": [{"gbps": of.gbps, "both_ways": of.both_ways, "share": share} for of, share in found.usual.items()],
        "links": [
            {
                "from": label(one.load.source),
                "to": label(one.load.target),
                "share": one.load.share,
                "verdict": one.verdict.value,
                "why": one.why,
            }
            for one in found.directions
        ],
    }
    print_document(document)


def _print_for_people(found: BurnVerdict, limits: FabricLimits, label: _Label) -> None:
    from rich.text import Text

    from clusterctl_cli.cabling_face import wide_console

    console = wide_console()
    for one in _worst_first(found):
        what = f"{one.verdict.name} {label(one.load.source)} → {label(one.load.target)}: {one.why}"
        console.print(Text(what, style="yellow" if one.verdict.admits else "red"))
    if not found.usual:
        console.print(Text("too few links of a kind to judge them beside each other: by the limits alone"))
    for of, share in found.usual.items():
        ways = "both ways at once" if of.both_ways else "one way"
        console.print(Text(f"usual: {share:.1f} % of {of.gbps:g} Gb/s, {ways}"))
    counts = f"{found.loaded} of {len(found.directions)} directions were loaded"
    goal = f"{found.at_goal} reached the goal of {limits['burn_goal']}"
    console.print(Text(f"{counts}, {goal}", style="green" if found.verdict.admits else "red"))


def _worst_first(found: BurnVerdict) -> list[LoadVerdict]:
    return sorted((one for one in found.directions if one.why), key=lambda one: -one.verdict.rank)
