"""`clusterctl cable plan`: writes the wiring plan of a standard fat tree."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click

from clusterctl_cli.formats import DOCUMENTS, format_option
from clusterctl_cli.options import gathered
from clusterctl_cli.text import echo

if TYPE_CHECKING:
    from clusterctl.operations.fabric_plans import FatTreeResult

_POSITIVE = click.IntRange(min=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanOptions:
    """The options of `plan`."""

    hosts: int
    rails: int
    radix: int
    tiers: int | None
    adapters: str | None
    twin_cages: bool | None
    out: Path | None
    force: bool
    hosts_per_rack: int
    host_units: int
    switches_per_rack: int
    racks_per_row: int
    host_prefix: str
    ufm_ports: int
    row_pitch: float
    slack: float
    labels: Path | None
    bom: Path | None
    as_json: bool


@click.command("plan")
@click.option("--hosts", type=click.IntRange(1, 65_536), required=True, help="Number of hosts.")
@click.option("--rails", type=click.IntRange(1, 16), default=8, show_default=True, help="Adapters of each host.")
@click.option("--radix", type=click.IntRange(4, 1024), default=64, show_default=True, help="Ports of every switch.")
@click.option("--tiers", type=click.IntRange(1, 3), help="Tiers of switches.  [default: as few as carry the hosts]")
@click.option("--adapters", metavar="NAMES", help="The hosts' HCAs, by rail.  [default: mlx5_0,mlx5_1,…]")
@click.option(
    "--twin-cages/--single-cages", default=None, help="Do two ports share a cage?  [default: from 64 ports on]"
)
@click.option("--hosts-per-rack", type=_POSITIVE, default=4, show_default=True)
@click.option("--host-units", type=_POSITIVE, default=8, show_default=True, help="Rack units of a host.")
@click.option("--switches-per-rack", type=_POSITIVE, default=16, show_default=True)
@click.option("--racks-per-row", type=_POSITIVE, default=16, show_default=True)
@click.option("--host-prefix", default="", help="Call hosts PREFIX001, PREFIX002 … instead of by rack position.")
@click.option("--out", type=click.Path(dir_okay=False, path_type=Path), help="The file to write.  [default: stdout]")
@click.option(
    "--ufm-ports",
    type=click.IntRange(0, 64),
    default=0,
    show_default=True,
    help="Leaf ports for UFM, instead of a host's.",
)
@click.option("--row-pitch", type=click.FloatRange(0, 50), default=3.0, show_default=True, help="Metres between rows.")
@click.option(
    "--slack", type=click.FloatRange(0, 20), default=1.0, show_default=True, help="Metres that a cable needs more."
)
@click.option(
    "--labels", type=click.Path(dir_okay=False, path_type=Path), help="Write a CSV with a label for each cable end."
)
@click.option("--bom", type=click.Path(dir_okay=False, path_type=Path), help="Write a CSV with the bill of materials.")
@click.option("--force", is_flag=True, help="Replace the files if they are there.")
@format_option(*DOCUMENTS)
@gathered(PlanOptions)
def plan(options: PlanOptions) -> None:
    """Write the wiring plan of a standard shape: a rail-optimised, non-blocking fat tree.

    One tier is one leaf for each rail; two tiers join all leaves by spines; three tiers join pods by core switches.
    Devices are named by rack position. Lengths follow from the places of both ends: check them before you order. With
    --json the counts are printed, and the plan only goes to --out.
    """
    from clusterctl.cabling.generate.materials import RoomSize
    from clusterctl.cabling.generate.racks import RackLayout
    from clusterctl.operations import fabric_plans
    from clusterctl_cli.formats import print_document

    result = fabric_plans.run_fat_tree(
        fabric_plans.FatTreeRequest(
            hosts=options.hosts,
            rails=options.rails,
            radix=options.radix,
            tiers=options.tiers,
            adapters=tuple(options.adapters.split(",")) if options.adapters else (),
            twin_cages=options.twin_cages,
            layout=RackLayout(
                options.hosts_per_rack,
                options.host_units,
                options.switches_per_rack,
                options.racks_per_row,
                options.host_prefix,
            ),
            room=RoomSize(options.row_pitch, options.slack),
            ufm_ports=options.ufm_ports,
            out=options.out,
            labels=options.labels,
            bom=options.bom,
            force=options.force,
        )
    )
    if options.as_json:
        print_document({**asdict(result.counts), "file": str(options.out) if options.out else None})
        return
    if options.out is None:
        echo(result.csv, nl=False)
    _print_counts(result)


def _print_counts(result: FatTreeResult) -> None:
    """Print on stderr, since the plan itself may be on stdout."""
    counts = result.counts
    tiers = {"leaf": counts.leaf_switches, "spine": counts.spine_switches, "core": counts.core_switches}
    switches = " + ".join(f"{count} {tier}" for tier, count in tiers.items() if count)
    echo(f"{switches} switches, {counts.links} links, {result.racks} racks", err=True)
    if not counts.even_pods:
        echo(
            "note: its pods differ in size, so OpenSM falls back from ftree to another routing; "
            "plan as many hosts as fill all pods",
            err=True,
        )
    if counts.networks > 1:
        echo(
            f"note: {counts.networks} separate networks, one for each rail: each needs its own subnet manager; "
            "lint this plan with --separate-rails",
            err=True,
        )
