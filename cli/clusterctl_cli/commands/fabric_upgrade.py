"""`clusterctl fabric upgrade`: new software for managed switches, in waves, through UFM."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from clusterctl_cli.formats import DOCUMENTS, format_option
from clusterctl_cli.options import dry_run_option, site_option, yes_option
from clusterctl_cli.text import echo

if TYPE_CHECKING:
    from clusterctl.operations.operation import Result


@click.command()
@click.argument("switches", metavar="[SWITCH...]", nargs=-1)
@click.option(
    "--to", metavar="VERSION", required=True, help="The software, a version of fabric.switch_software.images."
)
@click.option("--reason", required=True, help="Why; it is journaled with your name.")
@click.option("--at-once", type=click.IntRange(min=1), default=4, show_default=True, help="Switches of a wave at most.")
@click.option(
    "--stop-percent",
    type=click.FloatRange(min=0, max=100),
    default=0.0,
    show_default=True,
    help="Begin no further wave where more of the switches failed. The first switch must not fail.",
)
@click.option(
    "--back",
    "back_s",
    type=click.FloatRange(min=60),
    default=3600.0,
    show_default=True,
    help="Seconds in which the switches of a wave must be back.",
)
@click.option(
    "--settle",
    "settle_s",
    type=click.FloatRange(min=10),
    default=120.0,
    show_default=True,
    help="Seconds over which the counters of their links are watched then.",
)
@yes_option
@dry_run_option
@format_option(*DOCUMENTS)
@site_option
def upgrade(folder: Path, **options: Any) -> int:
    """Let UFM put new software on managed switches, wave by wave; each switch restarts.

    The first wave is one switch. A wave takes no switch that is needed: hosts behind it have no jobs and get none
    meanwhile, no host loses two rails, each other switch keeps half of its links, and the master subnet manager stays.
    A wave waits while the subnet manager is busy, and the next one begins once all links are up again and have no
    errors. Each order is journaled before it is sent; a run that was killed is finished by the next one, which orders
    nothing twice. Nothing is changed unless the site file has fabric.switch_software with act: true.

    Exit code 0: all switches run it; 1: one failed, or could not be updated now.
    """
    from clusterctl.operations.fabric_alarms import site_switch_services
    from clusterctl.operations.operation import Control
    from clusterctl.operations.serial import to_data
    from clusterctl.operations.switch_upgrade import SwitchSoftware, UpgradeRequest
    from clusterctl_cli.approval import Flags, approve, observed, print_event
    from clusterctl_cli.context import open_context
    from clusterctl_cli.formats import print_document

    flags = Flags.taken(options)
    request = UpgradeRequest(**options)
    context = open_context(folder)
    software = SwitchSoftware(context, site_switch_services(context, request.to))
    preview, shown = software.preview(request), flags.dry_run or not software.acts
    if shown:
        _print_waves(*software.waves(request))
    if not software.acts:
        echo("nothing is changed: fabric.switch_software has no act: true", err=True)
    if not approve(preview, replace(flags, dry_run=shown)):
        return 0
    with observed(context) as (log, cancelled):
        result = software.run(request, Control(preview.digest, print_event, cancelled))
    if flags.as_json:
        print_document({"upgrade": to_data(result)})
    else:
        _print_result(result)
    log.print_path(result.exit_code)
    return result.exit_code


def _print_result(result: Result) -> None:
    for outcome in result.outcomes:
        echo(f"{outcome.node}: {outcome.failure or outcome.text}")
    for name, why in result.skipped.items():
        echo(f"left alone: {name}: {why}")
    if result.stopped:
        echo(f"stopped: {result.stopped}")


def _print_waves(waves: Sequence[Sequence[str]], refusals: Mapping[str, str]) -> None:
    for number, wave in enumerate(waves):
        echo(f"{'canary' if number == 0 else f'wave {number}'}: {', '.join(wave)}", err=True)
    for name, reason in refusals.items():
        echo(f"not now: {name}: {reason}", err=True)
