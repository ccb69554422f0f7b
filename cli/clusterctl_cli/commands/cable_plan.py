"""`clusterctl cable plan`: writes the wiring plan of a standard fat tree."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click

from clusterctl_cli.formats import DOCUMENTS, format_option
from clusterctl_cli.options import gathered

if TYPE_CHECKING:
    from clusterctl.cabling.generate.shape import Shape
    from clusterctl.fleet.fabric.wiring import WiringPlan

_POSITIVE = click.IntRange(min=1)
_TWIN_CAGES_FROM = 64
"""Ports of a switch from which on two of them share a cage, unless a person says otherwise: NDR switches."""


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
    as_json: bool


@click.command("plan", short_help="Write the wiring plan of a standard fat tree.")
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
@click.option("--force", is_flag=True, help="Replace the file if it is there.")
@format_option(*DOCUMENTS)
@gathered(PlanOptions)
def plan(options: PlanOptions) -> None:
    """Write the wiring plan of a standard shape: a rail-optimised, non-blocking fat tree.

    One tier is one leaf for each rail; two tiers join all leaves by spines; three tiers join pods by core switches.
    Devices are named by rack position. With --json the counts are printed, and the plan only goes to --out.
    """
    from clusterctl.cabling.generate.fat_tree import PortNaming, generate
    from clusterctl.cabling.generate.racks import RackLayout
    from clusterctl.cabling.generate.shape import FabricSize, fewest_tiers, shape_of
    from clusterctl.formats.wiring.csv_plan import wiring_csv
    from clusterctl.operations.documents import write_document
    from clusterctl_cli.formats import print_document

    hosts, rails, radix = options.hosts, options.rails, options.radix
    shape = shape_of(FabricSize(hosts, rails, radix, options.tiers or fewest_tiers(hosts, rails, radix)))
    names = tuple(options.adapters.split(",")) if options.adapters else tuple(f"mlx5_{at}" for at in range(rails))
    twins = (radix >= _TWIN_CAGES_FROM and radix % 4 == 0) if options.twin_cages is None else options.twin_cages
    layout = RackLayout(
        options.hosts_per_rack,
        options.host_units,
        options.switches_per_rack,
        options.racks_per_row,
        options.host_prefix,
    )
    made = generate(shape, PortNaming(names, twins), layout)
    if options.out is not None:
        write_document(options.out, wiring_csv(made), option="--out", force=options.force)
    elif not options.as_json:
        click.echo(wiring_csv(made), nl=False)
    if options.as_json:
        print_document({**_counts(shape, made), "file": str(options.out) if options.out else None})
    else:
        _tell(shape, made)


def _counts(shape: Shape, made: WiringPlan) -> dict[str, int | bool]:
    return {
        "hosts": shape.wanted.hosts,
        "rails": shape.wanted.rails,
        "tiers": shape.wanted.tiers,
        "pods": shape.pods,
        "leaf_switches": shape.leaves,
        "spine_switches": shape.spines,
        "core_switches": shape.cores,
        "links": len(made.cables),
        "host_links": sum(cable.destination.device in made.hosts for cable in made.cables),
        "networks": shape.networks,
        "even_pods": shape.even,
    }


def _tell(shape: Shape, made: WiringPlan) -> None:
    """On stderr, since the plan itself may be on stdout."""
    count = _counts(shape, made)
    switches = [
        f"{count[f'{role}_switches']} {role}" for role in ("leaf", "spine", "core") if count[f"{role}_switches"]
    ]
    racks = len({location.rack for location in made.locations.values()})
    click.echo(f"{' + '.join(switches)} switches, {count['links']} links, {racks} racks", err=True)
    if not shape.even:
        click.echo(
            "note: its pods differ in size, so OpenSM falls back from ftree to another routing; "
            "plan as many hosts as fill all pods",
            err=True,
        )
    if shape.networks > 1:
        click.echo(
            f"note: {shape.networks} separate networks, one for each rail: each needs its own subnet manager; "
            "lint this plan with --separate-rails",
            err=True,
        )
