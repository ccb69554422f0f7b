"""`clusterctl retire NODE`."""

from __future__ import annotations

from pathlib import Path

import click

from clusterctl_cli.options import decision_options


@click.command()
@click.argument("node")
@click.option("--reason", required=True, help="Why it goes; kept in the node's history with your name.")
@click.option("--wipe", is_flag=True, help="Erase all its drives first: shows them, and asks for the serial.")
@click.option("--serial", default="", help="The machine's serial, with --wipe --yes where nobody can be asked.")
@decision_options
def retire(*, node: str, reason: str, wipe: bool, serial: str, folder: Path, **manner: bool) -> int:
    """Take a node out of the site's life, for good. Interrupted while erasing, the same command goes on."""
    from clusterctl.fleet.decisions import identity as orders_identity
    from clusterctl.fleet.errors import UsageError
    from clusterctl.operations.context import open_office
    from clusterctl.operations.decisions import Manner, carry_out

    if serial and not wipe:
        raise UsageError("--serial goes with --wipe", where="--serial", remedy="add --wipe, or leave it out")
    office = open_office(folder)
    if wipe:
        from clusterctl.operations.retire import Farewell, wipe_and_retire

        return wipe_and_retire(office, Farewell(node, reason, serial), Manner(**manner))
    office.node(node)
    return carry_out(office, [node], lambda state: orders_identity.retire(state, reason), Manner(**manner))
