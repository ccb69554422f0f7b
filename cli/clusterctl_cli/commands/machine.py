"""`clusterctl power|accounts|settings|firmware|bmc`: what is done to machines outside their steps."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from clusterctl_cli.formats import format_option
from clusterctl_cli.options import (
    decision_options,
    nodes_argument,
    optional_nodes_argument,
    reason_option,
    site_option,
    wave_options,
)

at_most_option = click.option(
    "--at-most", type=click.IntRange(min=1), help="More machines than the site's power.at_most allows."
)


@click.group()
def power() -> None:
    """Power of machines: through their BMCs, done once it is observed; reboots of gold nodes through Slurm."""


@power.command()
@nodes_argument
@site_option
@format_option()
def status(folder: Path, **options: Any) -> int:
    """Ask the BMCs whether their machines are on. Changes nothing."""
    from clusterctl.operations.power import status as read

    return _read(folder, options, read)


@power.command()
@nodes_argument
@reason_option()
@decision_options
def on(folder: Path, **options: Any) -> int:
    """Switch machines on, a few of each rack at a time (site.yml: power.stagger)."""
    return _switch("on", folder, options)


@power.command()
@nodes_argument
@reason_option()
@at_most_option
@decision_options
def off(folder: Path, **options: Any) -> int:
    """Switch machines off: the OS shuts down first, after its grace time power is cut. Refuses nodes of the pool."""
    return _switch("off", folder, options)


@power.command()
@nodes_argument
@reason_option()
@at_most_option
@click.option("--ac", is_flag=True, help="Cut all power in between, of the BMCs, too, as some firmware needs.")
@decision_options
def cycle(folder: Path, *, ac: bool, **options: Any) -> int:
    """Switch machines off as `off` does, and on again as `on` does."""
    return _switch("ac-cycle" if ac else "cycle", folder, options)


@power.command()
@nodes_argument
@reason_option()
@click.option(
    "--drain-minutes",
    type=click.IntRange(1, 10080),
    default=240,
    show_default=True,
    help="How long their jobs may still run; a node that is not free by then is given back.",
)
@decision_options
def reboot(folder: Path, **options: Any) -> int:
    """Reboot gold nodes through Slurm, as pending row remaps and GPU resets need it; they serve again once checked.

    A node is drained first, and no job is killed. A node that another user keeps out of work is refused, and stays
    out. Interrupted, the same command goes on.
    """
    from clusterctl.operations import scheduler_reboot as operation
    from clusterctl_cli.approval import Flags, carry_out
    from clusterctl_cli.context import open_context, select_nodes

    flags, context = Flags.taken(options), open_context(folder)
    request = operation.RebootRequest(nodes=select_nodes(context, options), **options)
    return carry_out(operation, context, request, flags)


@power.command()
@nodes_argument
@click.option("--iso", "uri", metavar="URL", required=True, help="The image, by http(s), without a login.")
@click.option("--eject", is_flag=True, help="Only eject the image; switch nothing.")
@click.option(
    "--screen-after",
    "screen_s",
    metavar="SECONDS",
    type=click.FloatRange(min=0, max=3600),
    default=60.0,
    show_default=True,
    help="From the end of the self-test until the screen is kept as evidence.",
)
@reason_option()
@at_most_option
@decision_options
def boot(folder: Path, **options: Any) -> int:
    """Boot machines once from an image that their BMCs fetch: the first machine of a site has no other way.

    The BMC inserts the image into its virtual drive; the machine is switched off as `off` does, and boots from it once.
    What its screen or serial console shows then is kept as evidence, where the BMC gives that (Dell, OpenBMC).
    Afterwards, --eject takes the image out again.
    """
    from clusterctl.operations import power_boot as operation
    from clusterctl_cli.approval import Flags, carry_out
    from clusterctl_cli.context import open_context, select_nodes

    flags, context = Flags.taken(options), open_context(folder)
    request = operation.PowerBootRequest(nodes=select_nodes(context, options), **options)
    return carry_out(operation, context, request, flags)


def _switch(order: str, folder: Path, options: dict[str, Any]) -> int:
    from clusterctl.fleet.decisions.permissions import PowerOrder
    from clusterctl.operations import power as operation
    from clusterctl_cli.approval import Flags, carry_out
    from clusterctl_cli.context import open_context, select_nodes

    flags, context = Flags.taken(options), open_context(folder)
    nodes = select_nodes(context, options)
    request = operation.PowerRequest(order=PowerOrder(order), nodes=nodes, **options)
    return carry_out(operation, context, request, flags)


@click.group()
def accounts() -> None:
    """Change passwords of BMCs by the site's rule (site.yml: bmc.rotation); each is on disk before it is used."""


@accounts.command()
@optional_nodes_argument
@click.option("--all", "everything", is_flag=True, help="All machines of the site.")
@decision_options
def rotate(folder: Path, *, everything: bool, **options: Any) -> int:
    """Give each BMC a new password of its own, log in with it, and give it to MAAS.

    A change that an earlier run began is finished instead.
    """
    from clusterctl.fleet.errors import UsageError
    from clusterctl.operations import accounts as operation
    from clusterctl_cli.approval import Flags, carry_out
    from clusterctl_cli.context import open_context, select_nodes

    flags = Flags.taken(options)
    if everything and (options["nodes"] or options["selectors"]):
        raise UsageError("--all and names exclude each other", where="--all", remedy="name nodes, or pass --all")
    context = open_context(folder)
    request = operation.RotateRequest(nodes=("*",) if everything else select_nodes(context, options))
    return carry_out(operation, context, request, flags)


@accounts.command("check")
@optional_nodes_argument
@site_option
@format_option()
def check_accounts(folder: Path, **options: Any) -> int:
    """Show which password each BMC accepts: the rule's, the one of the site, or neither. Changes nothing."""
    from clusterctl.operations.accounts import check
    from clusterctl_cli.output import print_accounts

    return _read(folder, options, check, print_accounts)


@click.group()
def settings() -> None:
    """Compare BIOS and firmware with the baseline of each machine's SKU, and correct them (docs/how-to/settings.md)."""


@settings.command("check")
@optional_nodes_argument
@click.option("--deadline", type=click.FloatRange(min=1), default=600.0, show_default=True, help="Seconds to wait.")
@site_option
@format_option()
def check_settings(folder: Path, *, deadline: float, **options: Any) -> int:
    """Show what differs from the baseline, and where machines of one SKU differ from each other. Changes nothing.

    Exit code 0: all are as the baseline has them; 1: some are not, or could not be read. Without names: all nodes.
    """
    from clusterctl.operations.settings import check
    from clusterctl_cli.render_settings import print_check

    return _read(folder, options, lambda context, nodes, control: check(context, nodes, deadline, control), print_check)


@settings.command()
@optional_nodes_argument
@wave_options
@decision_options
def apply(folder: Path, **options: Any) -> int:
    """Bring machines to their baseline: BMC firmware, other firmware, BIOS attributes, one reboot.

    One machine of each SKU comes first, alone; then --wave at a time, until more than --max-failures have failed. Only
    idle machines: not installed yet, quarantined, or held. Interrupted, the same command goes on.
    """
    from clusterctl.operations import settings as operation

    return _in_waves(operation, folder, options)


@click.command()
@optional_nodes_argument
@wave_options
@decision_options
def firmware(folder: Path, **options: Any) -> int:
    """Burn the adapter firmware that `nic_firmware_images` of site.yml names, from the machines' OS; then reboot.

    One machine of each SKU comes first, alone; then --wave at a time, until more than --max-failures have failed. Only
    idle machines: quarantined, held, or gold with --from-pool. Interrupted, the same command goes on.
    """
    from clusterctl.operations import nic_firmware as operation

    return _in_waves(operation, folder, options)


def _in_waves(operation: Any, folder: Path, options: dict[str, Any]) -> int:
    from clusterctl.operations.waves import WaveRequest
    from clusterctl_cli.approval import Flags, carry_out
    from clusterctl_cli.context import open_context, select_nodes

    flags, context = Flags.taken(options), open_context(folder, thorough=True)
    request = WaveRequest(nodes=select_nodes(context, options), **options)
    return carry_out(operation, context, request, flags)


@click.group()
def bmc() -> None:
    """Act on the BMCs themselves."""


@bmc.command("clear-log")
@nodes_argument
@reason_option()
@decision_options
def clear_log(folder: Path, **options: Any) -> int:
    """Clear the event logs of BMCs, once all their entries are in the journal.

    Only the hardware's event log (SEL, IML, Log1), on a machine with a known serial; audit and Lifecycle logs stay.
    """
    from clusterctl.operations import clear_log as operation
    from clusterctl_cli.approval import Flags, carry_out
    from clusterctl_cli.context import open_context, select_nodes

    flags, context = Flags.taken(options), open_context(folder)
    request = operation.ClearLogRequest(nodes=select_nodes(context, options), **options)
    return carry_out(operation, context, request, flags)


@bmc.command("check")
@optional_nodes_argument
@site_option
@format_option()
def check_bmcs(folder: Path, **options: Any) -> int:
    """Show whether clock, name servers and syslog target of BMCs are as site.yml wants them (bmc.services).

    Names certificates that are due, too, where the site renews them (bmc.certificates). Changes nothing. Exit code 0:
    all are right; 1: some are not, or could not be read. Without names: all nodes.
    """
    from clusterctl.operations.bmc_services import check

    return _read(folder, options, check)


@bmc.command("apply")
@nodes_argument
@decision_options
def apply_bmcs(folder: Path, **options: Any) -> int:
    """Set clock, name servers and syslog target of BMCs to what site.yml wants (bmc.services).

    Each is read back. No machine is switched or touched, so nodes may run jobs meanwhile. Interrupted, the same command
    goes on.
    """
    from clusterctl.operations import bmc_services as operation
    from clusterctl_cli.approval import Flags, carry_out
    from clusterctl_cli.context import open_context, select_nodes

    flags, context = Flags.taken(options), open_context(folder)
    return carry_out(operation, context, operation.BmcServicesRequest(nodes=select_nodes(context, options)), flags)


@bmc.group()
def certificates() -> None:
    """Check and renew the TLS certificates of BMCs by the site's authority (site.yml: bmc.certificates)."""


@certificates.command("check")
@optional_nodes_argument
@site_option
@format_option()
def check_certificates(folder: Path, **options: Any) -> int:
    """Show which certificate each BMC presents, whether it is due, and whether it can be renewed. Changes nothing.

    Exit code 0: all are as the site wants them; 1: some are due, or could not be read. Without names: all nodes.
    """
    from clusterctl.operations.bmc_certificates import check

    return _read(folder, options, check)


@certificates.command()
@nodes_argument
@click.option("--force", is_flag=True, help="Renew also what is not due.")
@click.option("--wave", type=click.IntRange(min=1), default=16, show_default=True, help="BMCs at a time.")
@click.option(
    "--max-failures",
    type=click.IntRange(min=0),
    default=0,
    show_default=True,
    help="Begin the next wave with at most so many failed BMCs.",
)
@decision_options
def renew(folder: Path, **options: Any) -> int:
    """Renew the certificates of BMCs that expire soon, or that the site's authority did not sign.

    Each BMC makes its own new key, which never leaves it. One BMC comes first, alone. What is presented afterwards is
    compared, and the machine proven behind it. Interrupted, the same command goes on.
    """
    from clusterctl.operations import bmc_certificates as operation
    from clusterctl_cli.approval import Flags, carry_out
    from clusterctl_cli.context import open_context, select_nodes

    flags, context = Flags.taken(options), open_context(folder)
    request = operation.CertificatesRequest(nodes=select_nodes(context, options), **options)
    return carry_out(operation, context, request, flags)


def _read(folder: Path, options: dict[str, Any], read: Any, show: Any = None) -> int:
    """Run an operation that only reads the nodes, print its result and return the exit code."""
    from clusterctl.operations.operation import Control
    from clusterctl_cli import output
    from clusterctl_cli.approval import observed
    from clusterctl_cli.context import open_context, select_nodes

    context = open_context(folder)
    with observed(context) as (log, cancelled):
        result = read(context, select_nodes(context, options), Control(cancelled=cancelled))
    (show or output.print_result)(result, as_json=options["as_json"])
    log.print_path(int(result.exit_code))
    return int(result.exit_code)
