"""`clusterctl quarantine NODE…`."""

from __future__ import annotations

from pathlib import Path

import click

from clusterctl_cli.options import decision_options

STEPS = ["discover", "install", "configure", "cable", "burnin", "admit"]


@click.command()
@click.argument("nodes", metavar="NODE...", nargs=-1)
@click.option("--reason", required=True, help="What is wrong; kept in the node's history with your name.")
@click.option("--part", default="", help="The part that is to blame, by slot, serial or name: gpu3, mlx5_2.")
@click.option(
    "--step", type=click.Choice(STEPS), help="Where a release leads back to; else the step to come, or burnin."
)
@decision_options
def quarantine(
    *, nodes: tuple[str, ...], reason: str, part: str, step: str | None, folder: Path, **manner: bool
) -> int:
    """Take nodes out, whatever the gate says: a person's word beats it. Gold ones leave the pool."""
    from clusterctl.fleet.decisions import decision as orders
    from clusterctl.fleet.node import Step
    from clusterctl.operations.context import open_office
    from clusterctl.operations.decisions import Manner, carry_out

    back = Step(step) if step else None
    office = open_office(folder)
    return carry_out(office, nodes, lambda node: orders.quarantine(node, reason, part, back), Manner(**manner))
