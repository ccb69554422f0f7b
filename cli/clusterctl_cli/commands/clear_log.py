"""`clusterctl clear-log NODE…`."""

from __future__ import annotations

from pathlib import Path

import click

from clusterctl_cli.options import decision_options


@click.command("clear-log")
@click.argument("nodes", metavar="NODE...", nargs=-1)
@click.option("--reason", required=True, help="Why; kept in the node's history with your name.")
@decision_options
def clear_log(*, nodes: tuple[str, ...], reason: str, folder: Path, **manner: bool) -> int:
    """Clear the event logs of machines' BMCs, once all that stands in them is kept in the journal. Names or patterns.

    Only the hardware's event log (SEL, IML, Log1), on the machine whose serial is known; audit and Lifecycle logs stay.
    """
    from clusterctl.operations.clear_log import clear
    from clusterctl.operations.context import open_office
    from clusterctl.operations.decisions import Manner

    return clear(open_office(folder), nodes, reason, Manner(**manner))
