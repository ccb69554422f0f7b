"""`clusterctl waive NODE…`."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import click

from clusterctl_cli.options import decision_options


@click.command()
@click.argument("nodes", metavar="NODE...", nargs=-1)
@click.option("--check", required=True, help="The check whose finding you answer for: gpu_ecc.")
@click.option("--subject", default="", help="Only on this part: 'gpu 3'; else whatever the check finds.")
@click.option("--reason", required=True, help="Why that is right; kept in the node's history with your name.")
@click.option("--until", metavar="WHEN", help="Required: 2026-12-01, 12h, 30d; at most 90 days.")
@click.option("--revoke", is_flag=True, help="Take the waiver back.")
@decision_options
def waive(
    *,
    nodes: tuple[str, ...],
    check: str,
    subject: str,
    reason: str,
    until: str | None,
    revoke: bool,
    folder: Path,
    **manner: bool,
) -> int:
    """Answer for a bad finding until a date: the gate then takes it for a warning; reports keep its verdict."""
    from clusterctl.fleet.decisions import decision as orders_waive
    from clusterctl.fleet.decisions.waiver import LONGEST
    from clusterctl.fleet.durations import FORMS, parse_until
    from clusterctl.fleet.errors import UsageError
    from clusterctl.operations.context import CLOCK, open_office
    from clusterctl.operations.decisions import Decide, Manner, carry_out

    if revoke:
        decide: Decide = partial(orders_waive.revoke, check=check, subject=subject, reason=reason)
    elif until is None:
        raise UsageError("a waiver needs an end", where="--until", remedy=FORMS)
    else:
        ends = parse_until(until, CLOCK.now(), longest=LONGEST)
        decide = partial(orders_waive.waive, check=check, subject=subject, reason=reason, until=ends)
    return carry_out(open_office(folder), nodes, decide, Manner(**manner))
