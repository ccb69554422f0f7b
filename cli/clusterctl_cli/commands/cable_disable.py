"""`clusterctl cable disable`: bad uplinks out of use, under a budget, until they are repaired."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click

from clusterctl_cli.options import FILE, dry_run_option, gathered, site_option, yes_option
from clusterctl_cli.text import echo

if TYPE_CHECKING:
    from clusterctl.operations.link_isolation import DisableResult


@dataclass(frozen=True, slots=True, kw_only=True)
class DisableOptions:
    """The options of `disable`."""

    findings: Path | None
    ports: tuple[str, ...]
    fabric: Path
    reason: str
    deadline: float
    yes: bool
    dry_run: bool
    folder: Path


@click.command("disable")
@click.option("--from", "findings", type=FILE, help="What `cable health --json` or `cable verify --json` printed.")
@click.option("--port", "ports", metavar="SWITCH:PORT", multiple=True, help="A link by one of its ports; repeatable.")
@click.option("--fabric", type=FILE, required=True, help="The reading that the links were judged by.")
@click.option("--reason", required=True, help="Why; it is journaled with your name.")
@click.option("--deadline", type=click.FloatRange(min=1), default=300.0, show_default=True, help="Seconds to wait.")
@yes_option
@dry_run_option
@site_option
@gathered(DisableOptions)
def disable(options: DisableOptions) -> int:
    """Disable the ports of bad links between switches, and print a repair request by rack.

    At most the smaller of 10 links and 0.5 % (at least 1) are out at a time, one uplink of each switch, never the last
    of its twins and never a host's own rail: the host is to be quarantined instead. Nothing is done where more than
    10 % of the links are broken, or where a port does not lead where it led when it was judged.

    Exit code 0: all were, or would be, disabled; 1: some were refused.
    """
    from clusterctl.operations import link_isolation as operation
    from clusterctl.operations.operation import Control
    from clusterctl_cli.approval import Flags, approve, observed, print_event
    from clusterctl_cli.context import open_context

    request = operation.DisableRequest(
        fabric=options.fabric,
        reason=options.reason,
        ports=options.ports,
        findings=options.findings,
        deadline_s=options.deadline,
    )
    context = open_context(options.folder)
    preview = operation.preview_disable(context, request)
    if not approve(preview, Flags(yes=options.yes or not preview.effects, dry_run=options.dry_run)):
        return 1 if preview.skipped else 0
    with observed(context) as (log, cancelled):
        result = operation.run_disable(context, request, Control(preview.digest, print_event, cancelled))
    _print(result)
    log.print_path(result.exit_code)
    return result.exit_code


def _print(result: DisableResult) -> None:
    """Print the repair request by rack, then the refused links."""
    done = [outcome for outcome in result.outcomes if not outcome.failure]
    for outcome in done:
        if not outcome.values:
            echo(f"{outcome.text}: {outcome.node}")
    requested = [outcome for outcome in done if outcome.values]
    for outcome in requested:
        values, port = outcome.values, outcome.node.replace(" port ", ":")
        echo(f"rack {values['rack'] or 'unknown'}")
        echo(f"  disabled: {values['port']}")
        echo(f"    other end: {values['peer']}; why: {values['why']}")
        echo(f"    repair: {values['repair']}; then: clusterctl cable enable --port {port}")
    for link, reason in result.skipped.items():
        echo(f"refused: {link}: {reason}")
    counts = f"{len(requested)} disabled, {len(result.skipped)} refused"
    echo(f"{counts}; out before: {result.out}, budget: {result.budget}")
