"""`clusterctl merge NODE`."""

from __future__ import annotations

from pathlib import Path

import click

from clusterctl_cli.options import decision_options


@click.command()
@click.argument("node")
@click.option("--serial", required=True, help="The serial that the node's last discover has read.")
@click.option("--from", "moved_from", metavar="OTHER", help="The node that was this machine so far; it is retired.")
@click.option("--reason", required=True, help="What was swapped; kept in the node's history with your name.")
@decision_options
def merge(*, node: str, serial: str, moved_from: str | None, reason: str, folder: Path, **manner: bool) -> int:
    """Say that another machine stands in a node's place (a swapped chassis or board). It goes the whole way again."""
    from clusterctl.fleet.decisions import identity as orders_identity
    from clusterctl.fleet.decisions.decision import Order
    from clusterctl.fleet.node import Serial
    from clusterctl.fleet.state import NodeState
    from clusterctl.operations.context import open_office
    from clusterctl.operations.decisions import Manner, carry_out, warn_of_sheet

    office = open_office(folder)
    other = office.node(moved_from) if moved_from is not None else None
    office.node(node)

    def decide(state: NodeState) -> Order:
        moved = office.journal.state(other.id) if other is not None else None
        return orders_identity.merge(state, Serial(serial), reason, office.journal.summaries(), moved)

    also = [other.name] if other is not None and other.name != node else []
    code = carry_out(office, [node], decide, Manner(**manner), also)
    warn_of_sheet(office, node, serial)
    return code
