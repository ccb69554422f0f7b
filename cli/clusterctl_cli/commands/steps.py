"""`clusterctl bootstrap`, and each of its steps alone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from clusterctl_cli.options import partner_option, step_options

STEPS = ["discover", "install", "configure", "cable", "burnin", "admit"]


@click.command()
@click.option("--until", type=click.Choice(STEPS), default="admit", help="Stop after this step.")
@partner_option
@step_options
def bootstrap(until: str, folder: Path, **options: Any) -> int:
    """Take every node the whole way to gold. Safe to repeat: goes on from where each node stands."""
    return go(folder, STEPS[: STEPS.index(until) + 1], options)


def one(step: str, text: str) -> click.Command:
    """The command that runs `step` alone, on the nodes that stand before it."""

    @click.command(name=step, help=text)
    @step_options
    def command(folder: Path, **options: Any) -> int:
        return go(folder, [step], options)

    return command


@click.command()
@click.option(
    "--reinstall", metavar="NODE", default="", help="Replace the OS of this node, which is installed already."
)
@click.option("--reason", default="", help="With --reinstall: why; kept in the node's history with your name.")
@click.option("--from-pool", is_flag=True, help="With --reinstall: even where it is gold; nobody may be working on it.")
@step_options
def install(*, folder: Path, reinstall: str, reason: str, from_pool: bool, **options: Any) -> int:
    """Install the OS on nodes that are discovered. Overwrites their root disk; asks first. What is installed already is
    left as it is.

    With --reinstall, replace the OS of one node: its serial is read from its BMC first and must be the node's; then it
    goes the whole way again, from install on. Interrupted, the next install or bootstrap goes on with it.
    """
    from clusterctl.fleet.errors import UsageError

    if not reinstall:
        if reason or from_pool:
            where = "--reason" if reason else "--from-pool"
            raise UsageError(f"{where} goes with --reinstall", where=where, remedy="name the node with --reinstall")
        return go(folder, ["install"], options)
    if options.pop("limit"):
        remedy = f"leave it out: --reinstall {reinstall} takes that node alone"
        raise UsageError("--limit and --reinstall both choose nodes", where="--limit", remedy=remedy)
    from clusterctl.operations.context import open_office
    from clusterctl.operations.decisions import Manner
    from clusterctl.operations.reinstall import Anew, reinstall_node

    return reinstall_node(open_office(folder, thorough=True), Anew(reinstall, reason, from_pool), Manner(**options))


@click.command()
@click.option("--check", is_flag=True, help="Only say what the roles would change on nodes that were configured.")
@step_options
def configure(*, folder: Path, check: bool, **options: Any) -> int:
    """Apply the roles to nodes that are installed; reboot those whose roles need it, unless the site forbids it.

    With --check, look at the gold pool (or at --limit) and say what has drifted: which tasks would change something, on
    which nodes. Changes and records nothing. Exit code 0: all is as the site has it; 1: something would change, or a
    node could not be measured.
    """
    if not check:
        return go(folder, ["configure"], options)
    from clusterctl.operations.context import open_office
    from clusterctl.operations.drift import check as look

    return look(open_office(folder, thorough=True), options["limit"], as_json=options["as_json"])


admit = one("admit", "Admit to the gold pool nodes that are burned in.")


def go(folder: Path, steps: list[str], options: dict[str, Any]) -> int:
    """Run these steps; the exit code. `options` are `Order`'s."""
    from clusterctl.operations.adapters import Edges
    from clusterctl.operations.bootstrap import Order, conduct
    from clusterctl.operations.context import open_office

    order = Order(tuple(steps), **options)
    office = open_office(folder, thorough=True)
    return conduct(office, Edges(office.site, read_only=order.read_only), order)
