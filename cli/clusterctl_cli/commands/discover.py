"""`clusterctl discover`: the step; with `--sweep`, the BMCs of networks, before any of them is a node."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from clusterctl_cli.commands.steps import run_steps
from clusterctl_cli.options import FILE, step_options

_ONLY_SWEEP = {
    "networks": "CIDR",
    "exclude": "--exclude",
    "limit_hosts": "--limit-hosts",
    "leases": "--leases",
    "lists": "--list",
    "write": "--write",
    "no_login": "--no-login",
}
"""Parameter → what it is called on the command line."""
_OF_THE_STEP = ("limit", "selectors", "yes", "dry_run", "as_json", "read_only", "detach", "pool", "priority")


@click.command()
@click.argument("networks", nargs=-1, metavar="[CIDR]...")
@click.option("--sweep", multiple=True, metavar="CIDR", help="Find the BMCs in these networks; no node is touched.")
@click.option("--exclude", multiple=True, metavar="CIDR", help="With --sweep: not these; repeatable.")
@click.option("--limit-hosts", type=click.IntRange(1, 1 << 20), help="Refuse to ask more addresses.  [default: 65536]")
@click.option("--leases", multiple=True, type=FILE, help="A lease file of dhcpd, Kea or dnsmasq; repeatable.")
@click.option("--list", "lists", multiple=True, type=FILE, help="A CSV of machines by serial or MAC; repeatable.")
@click.option(
    "--write",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Bring this sheet up to date with what was found, or begin it.",
)
@click.option("--no-login", is_flag=True, help="Only what BMCs report without a login; needs no site.")
@click.option("--read-only", is_flag=True, help="Power no machine on; what cannot be measured then is inconclusive.")
@step_options
def discover(folder: Path, sweep: tuple[str, ...], networks: tuple[str, ...], **options: Any) -> int:
    """Read the machines' inventory over Redfish and match it against the SKUs. Changes nothing, except that a machine
    which its BMC has never seen running is powered on once, read again, and left as it was found; with --read-only
    that one is not either, and stands inconclusive.

    With --sweep CIDR... find out which BMCs there are: vendor, serial, MAC, place. At most eight requests to each, one
    login to those with a trusted certificate, and nothing is written to any of them.
    """
    if not sweep:
        _refuse({"networks": networks, **options})
        chosen = {name: options[name] for name in _OF_THE_STEP}
        return run_steps(folder, ["discover"], chosen)
    from clusterctl.fleet.errors import UsageError
    from clusterctl_cli.queueing import QueuePlacement

    limit, selectors = options.pop("limit"), options.pop("selectors")
    if limit or selectors:
        where, remedy = "--limit" if limit else "-l", "leave addresses out with --exclude"
        raise UsageError("chooses nodes, and a sweep has none yet", where=where, remedy=remedy)
    QueuePlacement.taken(options).refuse("a sweep prints its result")
    del options["read_only"]  # a sweep changes nothing anyway
    return _sweep(folder, (*sweep, *networks), options)


def _sweep(folder: Path, networks: tuple[str, ...], options: dict[str, Any]) -> int:
    from clusterctl.operations import sweep as operation
    from clusterctl.operations.operation import Control
    from clusterctl_cli.approval import Flags, approve
    from clusterctl_cli.render_sweep import print_sweep
    from clusterctl_cli.stopping import stoppable
    from clusterctl_cli.sweep_progress import SweepView

    flags = Flags.taken(options)
    request = operation.SweepRequest(networks=networks, public=flags.yes, **options)
    preview = operation.preview(folder, request)
    if not approve(preview, Flags(yes=True, dry_run=flags.dry_run, as_json=flags.as_json)):
        return 0
    with stoppable() as cancelled, SweepView() as view:
        result = operation.sweep(folder, request, Control(preview.digest, view.on_event, cancelled))
    print_sweep(result, as_json=flags.as_json)
    return result.exit_code


def _refuse(options: dict[str, Any]) -> None:
    """Refuse options that apply to a sweep only."""
    from clusterctl.fleet.errors import UsageError

    for name, written in _ONLY_SWEEP.items():
        if options[name]:
            raise UsageError("goes with --sweep only", where=written, remedy="clusterctl discover --sweep CIDR …")
