"""`clusterctl hold|release|quarantine|waive|merge|retire`: operators' decisions about nodes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from clusterctl_cli.completion import complete_checks, complete_nodes, complete_parts
from clusterctl_cli.options import decision_options, nodes_argument, reason_option
from clusterctl_cli.text import echo

STEPS = ["discover", "install", "configure", "cable", "burnin", "admit"]


@click.command()
@nodes_argument
@reason_option()
@click.option(
    "--until", default="", metavar="WHEN", help="2026-12-01, 2026-12-01T18:00 (UTC), 12h, 3d; else until released."
)
@decision_options
def hold(folder: Path, **options: Any) -> int:
    """Keep every step off nodes, at any stage; gold nodes leave the pool."""
    return _decide("hold", folder, options)


@click.command()
@nodes_argument
@reason_option("What was repaired")
@click.option(
    "--part",
    default="",
    shell_complete=complete_parts,
    help="The part that was repaired, by slot, serial or name; else the one that keeps the node back.",
)
@click.option("--serial", default="", help="Of the new part: it joins the history of both parts. One node.")
@decision_options
def release(folder: Path, **options: Any) -> int:
    """Lift a hold; send quarantined and stopped nodes back to the step that stopped them, for the next bootstrap.

    With --part or --serial, the repair joins the history of the part.
    """
    return _decide("repaired" if options["part"] or options["serial"] else "release", folder, options)


@click.command()
@nodes_argument
@reason_option("What is wrong")
@click.option(
    "--part",
    default="",
    shell_complete=complete_parts,
    help="The part to blame, by slot, serial or name: gpu3, mlx5_2.",
)
@click.option("--step", type=click.Choice(STEPS), help="Where a release leads back to; else the next step, or burnin.")
@decision_options
def quarantine(folder: Path, **options: Any) -> int:
    """Take nodes out of use, whatever the gate decides. Gold nodes leave the pool."""
    options["step"] = options["step"] or ""
    return _decide("quarantine", folder, options)


@click.command()
@nodes_argument
@click.option(
    "--check", required=True, shell_complete=complete_checks, help="The check with the finding to waive: gpu_ecc."
)
@click.option(
    "--subject",
    "part",
    default="",
    shell_complete=complete_parts,
    help="Only on this part: 'gpu 3'; else on every part.",
)
@reason_option("Why that is right")
@click.option("--until", default="", metavar="WHEN", help="Required: 2026-12-01, 12h, 30d; at most 90 days.")
@click.option("--revoke", is_flag=True, help="End the waiver now.")
@decision_options
def waive(folder: Path, *, revoke: bool, **options: Any) -> int:
    """Take responsibility for a bad finding until a date: the gate takes it for a warning; reports keep its verdict."""
    return _decide("revoke" if revoke else "waive", folder, options)


@click.command()
@click.argument("node", shell_complete=complete_nodes)
@click.option("--serial", required=True, help="The serial that the node's last discover has read.")
@click.option(
    "--from", "moved_from", default="", metavar="OTHER", help="The node that was this machine; it is retired."
)
@reason_option("What was swapped")
@decision_options
def merge(node: str, folder: Path, **options: Any) -> int:
    """Record that another machine is in a node's place (a swapped chassis or board). All its steps run again."""
    return _decide("merge", folder, {**options, "nodes": (node,)})


@click.command()
@click.argument("node", shell_complete=complete_nodes)
@reason_option()
@click.option("--wipe", is_flag=True, help="Erase all its drives first.")
@click.option("--serial", default="", help="With --wipe: the machine's serial, as it stands on its label.")
@click.option(
    "--adopted", is_flag=True, help="With --wipe: also a machine that clusterctl did not install, through our own PXE."
)
@decision_options
def retire(node: str, folder: Path, *, wipe: bool, serial: str, adopted: bool, **options: Any) -> int:
    """Retire a node for good. Interrupted during an erase, the same command goes on."""
    from clusterctl.fleet.errors import UsageError

    if not wipe:
        for option, given in (("--serial", serial), ("--adopted", adopted)):
            if given:
                raise UsageError(f"{option} goes with --wipe", where=option, remedy="add --wipe, or leave it out")
        return _decide("retire", folder, {**options, "nodes": (node,)})
    from clusterctl.operations import wipe as operation
    from clusterctl_cli.approval import Flags, ask, carry_out
    from clusterctl_cli.context import open_context
    from clusterctl_cli.output import preview_lines

    context, flags = open_context(folder), Flags.taken(options)
    request = operation.WipeRequest(node=node, serial=serial, adopted=adopted, **options)
    if not serial and not flags.dry_run:
        operation.preview(context, request)
        if flags.yes:
            operation.require_serial(context.node(node), serial)
        question = "Type the serial of the machine that loses all data on its drives"
        remedy = "pass --serial SERIAL, as it stands on the machine's label"
        serial = ask(question, option="--serial", remedy=remedy)
        operation.require_serial(context.node(node), serial)
    request = operation.WipeRequest(node=node, serial=serial, adopted=adopted, **options)
    if flags.yes and not flags.dry_run:  # what is erased is always printed
        for line in preview_lines(operation.preview(context, request)):
            echo(line, err=True)
    return carry_out(operation, context, request, flags)


def _decide(decision: str, folder: Path, options: dict[str, Any]) -> int:
    from clusterctl.operations import decisions
    from clusterctl_cli.approval import Flags, carry_out, fix_moments
    from clusterctl_cli.context import open_context, select_nodes

    flags, context = Flags.taken(options), open_context(folder)
    options.setdefault("selectors", ())
    nodes = select_nodes(context, options)
    fix_moments(options)
    request = decisions.DecisionRequest(decision=decisions.Decision(decision), nodes=nodes, **options)
    return carry_out(decisions, context, request, flags)
