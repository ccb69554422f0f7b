"""`clusterctl hold NODE…`."""

from __future__ import annotations

from pathlib import Path

import click

from clusterctl_cli.options import decision_options


@click.command()
@click.argument("nodes", metavar="NODE...", nargs=-1)
@click.option("--reason", required=True, help="Why; kept in the node's history with your name.")
@click.option("--until", metavar="WHEN", help="2026-12-01, 2026-12-01T18:00 (UTC), 12h, 3d; else until released.")
@decision_options
def hold(*, nodes: tuple[str, ...], reason: str, until: str | None, folder: Path, **manner: bool) -> int:
    """Keep every step off nodes, at whatever stage; gold ones leave the pool. Names or patterns."""
    from clusterctl.fleet.decisions import decision as orders
    from clusterctl.fleet.durations import parse_until
    from clusterctl.operations.context import CLOCK, open_office
    from clusterctl.operations.decisions import Manner, carry_out

    ends = parse_until(until, CLOCK.now()) if until is not None else None
    office = open_office(folder)
    return carry_out(office, nodes, lambda node: orders.hold(node, reason, ends), Manner(**manner))
