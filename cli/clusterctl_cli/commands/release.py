"""`clusterctl release NODE…`."""

from __future__ import annotations

from pathlib import Path

import click

from clusterctl_cli.options import decision_options


@click.command()
@click.argument("nodes", metavar="NODE...", nargs=-1)
@click.option("--reason", required=True, help="What was mended; kept in the node's history with your name.")
@decision_options
def release(*, nodes: tuple[str, ...], reason: str, folder: Path, **manner: bool) -> int:
    """Lift a hold; send quarantined and stopped nodes back to the step that stopped them, for the next bootstrap."""
    from clusterctl.fleet.decisions import decision as orders
    from clusterctl.operations.context import open_office
    from clusterctl.operations.decisions import Manner, carry_out

    office = open_office(folder)
    return carry_out(office, nodes, lambda node: orders.release(node, reason), Manner(**manner))
