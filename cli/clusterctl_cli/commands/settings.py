"""`clusterctl settings check|apply [NODE…]`."""

from __future__ import annotations

from pathlib import Path

import click

from clusterctl_cli.options import dry_run_option, json_option, site_option, verbose_option


@click.group()
def settings() -> None:
    """BIOS attributes and firmware against the baseline of each machine's SKU (docs/settings.md)."""


@settings.command()
@click.argument("nodes", metavar="[NODE...]", nargs=-1)
@click.option("--deadline", type=click.FloatRange(min=1), default=600.0, show_default=True, help="Seconds to wait.")
@site_option
@json_option
@verbose_option
def check(*, nodes: tuple[str, ...], deadline: float, folder: Path, as_json: bool) -> int:
    """Say what is not as the baseline has it, and where machines of one SKU differ. Changes nothing.

    Exit code 0: all are as wanted; 1: some are not, or could not be read. Names or patterns; without any: all.
    """
    from clusterctl.operations.context import open_office
    from clusterctl.operations.settings_check import check as look

    return look(open_office(folder), nodes, deadline, as_json=as_json)


@settings.command()
@click.argument("nodes", metavar="[NODE...]", nargs=-1)
@click.option("--reason", required=True, help="Why; kept in the nodes' history with your name.")
@click.option("--wave", type=click.IntRange(1, 64), default=4, show_default=True, help="Machines at a time.")
@click.option(
    "--max-failures",
    type=click.IntRange(min=0),
    default=0,
    show_default=True,
    help="Go on to the next wave with so many failed.",
)
@click.option("--from-pool", is_flag=True, help="Gold nodes too: each is held just before its turn, and stays held.")
@click.option("--yes", is_flag=True, help="Do it. Without this, only say what would be done.")
@dry_run_option
@site_option
@json_option
@verbose_option
def apply(
    *,
    nodes: tuple[str, ...],
    reason: str,
    wave: int,
    max_failures: int,
    from_pool: bool,
    folder: Path,
    **manner: bool,
) -> int:
    """Plan what brings machines to their baseline: BMC firmware, other firmware, BIOS attributes, one reboot.

    Only with --yes it is done: first one machine of each SKU, alone; then --wave at a time, until more than
    --max-failures have failed. Only machines that nobody uses: not installed yet, quarantined, or held. Interrupted,
    the same command looks first, and goes on.
    """
    from clusterctl.operations.context import open_office
    from clusterctl.operations.decisions import Manner
    from clusterctl.operations.settings_apply import apply as bring
    from clusterctl.operations.settings_waves import Wanted

    wanted = Wanted(nodes, reason, wave, max_failures, from_pool)
    return bring(open_office(folder), wanted, Manner(**manner))
