"""`clusterctl nic-firmware [NODE…]`."""

from __future__ import annotations

from pathlib import Path

import click

from clusterctl_cli.options import dry_run_option, json_option, site_option, verbose_option


@click.command("nic-firmware")
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
def nic_firmware(
    *,
    nodes: tuple[str, ...],
    reason: str,
    wave: int,
    max_failures: int,
    from_pool: bool,
    folder: Path,
    **manner: bool,
) -> int:
    """Burn the adapters' firmware that `nic_firmware_images` of site.yml names, from the machines' OS; then reboot.

    Only with --yes: first one machine of each SKU, alone; then --wave at a time, until more than --max-failures have
    failed. Only machines that nobody uses: quarantined, held, or gold with --from-pool. Interrupted, the same command
    looks first, and goes on.
    """
    from clusterctl.operations.context import open_office
    from clusterctl.operations.decisions import Manner
    from clusterctl.operations.nic_firmware import update
    from clusterctl.operations.settings_waves import Wanted

    wanted = Wanted(nodes, reason, wave, max_failures, from_pool)
    return update(open_office(folder, thorough=True), wanted, Manner(**manner))
