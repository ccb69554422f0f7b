"""`clusterctl fabric restart`: UFM, where its model of the fabric is stale."""

from __future__ import annotations

from pathlib import Path

import click

from clusterctl_cli.formats import DOCUMENTS, format_option
from clusterctl_cli.options import dry_run_option, site_option, yes_option
from clusterctl_cli.text import echo


@click.command()
@click.option("--reason", required=True, help="Why; it is journaled with your name.")
@click.option(
    "--back",
    type=click.FloatRange(min=60),
    default=1200.0,
    show_default=True,
    help="Seconds in which UFM must have the fabric again.",
)
@yes_option
@dry_run_option
@format_option(*DOCUMENTS)
@site_option
def restart(*, reason: str, back: float, yes: bool, dry_run: bool, as_json: bool, folder: Path) -> int:
    """Restart the active UFM by fabric.ufm.restart, and wait until its links are those of the fabric.

    It is refused where UFM's model is the fabric, where UFM does not run on that host, and for an hour after a restart.
    A run that was killed is finished by the next one: it reads back, and restarts nothing a second time. The subnet
    manager restarts with UFM; traffic goes on, and changes of the fabric wait.

    Exit code 0: UFM has the fabric; 1: it does not, or could not be restarted.
    """
    from clusterctl.operations.fabric_alarms import site_ufm_restart
    from clusterctl.operations.operation import Control
    from clusterctl.operations.serial import to_data
    from clusterctl.operations.ufm_restart import RestartRequest
    from clusterctl_cli.approval import Flags, approve, observed, print_event
    from clusterctl_cli.context import open_context
    from clusterctl_cli.formats import print_document

    context = open_context(folder)
    ufm, request = site_ufm_restart(context), RestartRequest(reason=reason, back_s=back)
    preview = ufm.preview(request)
    if not approve(preview, Flags(yes=yes, dry_run=dry_run)):
        return 0
    with observed(context) as (log, cancelled):
        result = ufm.run(request, Control(preview.digest, print_event, cancelled))
    if as_json:
        print_document({"restart": to_data(result)})
    else:
        for outcome in result.outcomes:
            echo(f"{outcome.node}: {outcome.failure or outcome.text}")
    log.print_path(result.exit_code)
    return result.exit_code
