"""`clusterctl bootstrap`, its steps alone, and `revalidate`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from clusterctl_cli.completion import complete_nodes, complete_parts, complete_suites
from clusterctl_cli.options import decision_options, nodes_argument, partner_option, queue_options, step_options

if TYPE_CHECKING:
    from clusterctl.operations.context import SiteContext

STEPS = ["discover", "install", "configure", "cable", "burnin", "admit"]


@click.command()
@click.option("--until", type=click.Choice(STEPS), default="admit", help="Stop after this step.")
@partner_option
@step_options
def bootstrap(until: str, folder: Path, **options: Any) -> int:
    """Take every node the whole way to gold. Safe to repeat: goes on from where each node stands."""
    return run_steps(folder, STEPS[: STEPS.index(until) + 1], options)


def one(step: str, text: str) -> click.Command:
    """Return the command that runs `step` alone, on the nodes that stand before it."""

    @click.command(name=step, help=text)
    @step_options
    def command(folder: Path, **options: Any) -> int:
        return run_steps(folder, [step], options)

    return command


@click.command()
@click.option(
    "--reinstall",
    metavar="NODE",
    default="",
    shell_complete=complete_nodes,
    help="Replace the OS of this node, which is installed already.",
)
@click.option("--reason", default="", help="With --reinstall: why; kept in the node's history with your name.")
@click.option("--from-pool", is_flag=True, help="With --reinstall: even where it is gold; no job may run on it.")
@step_options
def install(*, folder: Path, reinstall: str, reason: str, from_pool: bool, **options: Any) -> int:
    """Install the OS on nodes that are discovered. Overwrites their root disk. Installed nodes are left as they are.

    With --reinstall, replace the OS of one node: its serial is read from its BMC first and must be the node's; then
    all its steps run again, from install on. Interrupted, the next install or bootstrap goes on with it.
    """
    from clusterctl.fleet.errors import UsageError

    if not reinstall:
        if reason or from_pool:
            where = "--reason" if reason else "--from-pool"
            raise UsageError(f"{where} goes with --reinstall", where=where, remedy="name the node with --reinstall")
        return run_steps(folder, ["install"], options)
    limit, selectors = options.pop("limit"), options.pop("selectors")
    if limit or selectors:
        where, remedy = "--limit" if limit else "-l", f"leave it out: --reinstall {reinstall} takes that node alone"
        raise UsageError(f"{where} and --reinstall both choose nodes", where=where, remedy=remedy)
    from clusterctl.operations import reinstall as operation

    request = operation.ReinstallRequest(node=reinstall, reason=reason, from_pool=from_pool)
    return run_operation(operation, folder, lambda _context: request, options)


@click.command()
@click.option("--check", is_flag=True, help="Only show what the roles would change on nodes that were configured.")
@step_options
def configure(*, folder: Path, check: bool, **options: Any) -> int:
    """Apply the roles to installed nodes; reboot those with a role that needs it, unless the site forbids it.

    With --check, read the gold pool (or --limit) and show what has drifted: which tasks would change something, on
    which nodes. Changes and records nothing. Exit code 0: all is as the site has it; 1: something would change, or a
    node could not be measured.
    """
    if not check:
        return run_steps(folder, ["configure"], options)
    from clusterctl_cli.queueing import QueuePlacement

    QueuePlacement.taken(options).refuse("--check prints its result")
    from clusterctl.operations import drift
    from clusterctl.operations.operation import Control
    from clusterctl_cli.approval import observed
    from clusterctl_cli.context import open_context, select_nodes
    from clusterctl_cli.render_drift import print_drift

    context = open_context(folder, thorough=True)
    with observed(context) as (log, cancelled):
        report = drift.read(context, select_nodes(context, options, "limit"), Control(cancelled=cancelled))
    print_drift(report, as_json=options["as_json"])
    log.print_path(report.exit_code)
    return report.exit_code


admit = one("admit", "Admit to the gold pool nodes that are burned in.")


@click.command()
@nodes_argument
@click.option(
    "--repaired",
    "parts",
    metavar="PART[,PART]",
    multiple=True,
    shell_complete=complete_parts,
    help="gpu3, a slot, a serial, 'cable 5'.",
)
@click.option("--reason", default="", help="Instead of the parts' names; kept in the node's history with your name.")
@click.option("--from-pool", is_flag=True, help="Even where it is gold and no scheduler reports that it is idle.")
@click.option(
    "--suite", default="", shell_complete=complete_suites, help="Another burn-in than the site's, such as revalidate."
)
@partner_option
@queue_options
@decision_options
def revalidate(folder: Path, *, parts: tuple[str, ...], **options: Any) -> int:
    """Prove nodes again after a repair, from the step on that the repair touched, up to gold.

    An open chassis puts all PCIe links in doubt, whatever was repaired. The nodes are measured with gold nodes: those
    of --partner, else idle ones that the scheduler lends. Steps that no repair touched do not run again. --repaired
    and --reason hold for all the nodes.
    """
    from clusterctl.operations import revalidate as operation
    from clusterctl_cli.context import select_nodes

    named = tuple(name.strip() for part in parts for name in part.split(",") if name.strip())
    wanted = {name: options.pop(name) for name in ("reason", "from_pool", "suite", "partners")}

    def request(context: SiteContext) -> operation.RevalidateRequest:
        return operation.RevalidateRequest(nodes=select_nodes(context, options), parts=named, **wanted)

    return run_operation(operation, folder, request, options)


def run_steps(folder: Path, steps: list[str], options: dict[str, Any]) -> int:
    """Run these steps; return the exit code."""
    from clusterctl.fleet.node import Step
    from clusterctl.operations import bootstrap as operation
    from clusterctl_cli.context import select_nodes

    wanted = {name: options.pop(name) for name in ("partners", "read_only") if name in options}

    def request(context: SiteContext) -> operation.RunRequest:
        limit = select_nodes(context, options, "limit")
        return operation.RunRequest(steps=tuple(map(Step, steps)), limit=limit, **wanted)

    return run_operation(operation, folder, request, options, unasked=bool(wanted.get("read_only")))


def run_operation(
    operation: Any,
    folder: Path,
    make_request: Callable[[SiteContext], Any],
    options: dict[str, Any],
    *,
    unasked: bool = False,
) -> int:
    """Preview the operation on nodes that the command line chooses, ask, run it, print where the nodes stand."""
    from clusterctl.operations.operation import Control
    from clusterctl_cli.approval import Flags, approve, logged
    from clusterctl_cli.context import open_context
    from clusterctl_cli.progress import ProgressView
    from clusterctl_cli.queueing import QueuePlacement, place
    from clusterctl_cli.render import print_run
    from clusterctl_cli.stopping import stoppable

    flags, placement = Flags.taken(options), QueuePlacement.taken(options)
    context = open_context(folder, thorough=True)
    request = make_request(context)
    preview = operation.preview(context, request)
    if unasked or not preview.effects:
        flags = Flags(yes=True, dry_run=flags.dry_run, as_json=flags.as_json)
    if not approve(preview, flags):
        return 0
    if placement.elsewhere:
        return place(context, request, preview, placement, as_json=flags.as_json)
    with logged(context) as log, stoppable() as cancelled, ProgressView() as view:
        result = operation.run(context, request, Control(preview.digest, view.on_event, cancelled))
    print_run(context, result, as_json=flags.as_json)
    log.print_path(result.exit_code)
    return int(result.exit_code)
