"""`clusterctl cable enable`: repaired links back into use, once they have proven themselves."""

from __future__ import annotations

from pathlib import Path

import click

from clusterctl_cli.options import dry_run_option, site_option, yes_option
from clusterctl_cli.text import echo


@click.command("enable")
@click.option("--port", "ports", metavar="SWITCH:PORT", multiple=True, help="Only these.  [default: all that are out]")
@click.option("--limits", default="", show_default="the site's", help="Fabric limits by name, or a file of your own.")
@click.option(
    "--deadline", type=click.FloatRange(min=1), default=300.0, show_default=True, help="Seconds, without the proof."
)
@yes_option
@dry_run_option
@site_option
def enable(*, ports: tuple[str, ...], limits: str, deadline: float, yes: bool, dry_run: bool, folder: Path) -> int:
    """Enable ports that `cable disable` took out, and prove the links by their error counters.

    A port must lead where it did, at the rate that it had and that most of its like have. Its counters are read twice,
    as far apart as the limits take to prove the bit error rate (12 minutes at 400 Gb/s); what came back slower, or is
    not proven healthy by then, is disabled again.

    Exit code 0: all are proven and in use; 1: some are not, with the reason.
    """
    from clusterctl.operations import link_isolation as operation
    from clusterctl.operations.operation import Control
    from clusterctl_cli.approval import Flags, approve, observed, print_event
    from clusterctl_cli.context import open_context

    request = operation.EnableRequest(ports=ports, limits=limits, deadline_s=deadline)
    context = open_context(folder)
    preview = operation.preview_enable(context, request)
    if not preview.effects:
        echo("no port is disabled", err=True)
        return 0
    if not approve(preview, Flags(yes=yes, dry_run=dry_run)):
        return 0
    with observed(context) as (log, cancelled):
        result = operation.run_enable(context, request, Control(preview.digest, print_event, cancelled))
    for outcome in result.outcomes:
        echo(f"{outcome.node}: {outcome.failure or outcome.text}")
    log.print_path(result.exit_code)
    return result.exit_code
