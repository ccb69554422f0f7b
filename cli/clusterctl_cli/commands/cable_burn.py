"""`clusterctl cable burn`: free hosts load every link in both directions; each link is judged by its counters."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from clusterctl_cli.formats import DOCUMENTS, format_option
from clusterctl_cli.options import (
    dry_run_option,
    duration_seconds,
    optional_nodes_argument,
    site_option,
    yes_option,
)
from clusterctl_cli.text import echo

if TYPE_CHECKING:
    from clusterctl.operations.cable_burn import CableBurnResult


@click.command("burn")
@optional_nodes_argument
@click.option(
    "--rail", "rails", type=click.IntRange(min=0), multiple=True, help="Only adapters of this rail; repeatable."
)
@click.option(
    "--stage",
    callback=duration_seconds,
    metavar="SPAN",
    default="10min",
    show_default=True,
    help="How long each stage runs.",
)
@click.option(
    "--for", "for_s", callback=duration_seconds, metavar="SPAN", help="Load all links again and again; else once each."
)
@click.option("--adaptive", is_flag=True, help="The switches route adaptively.")
@click.option("--limits", default="ndr", show_default=True, help="Fabric limits by name, or a file of your own.")
@yes_option
@dry_run_option
@site_option
@format_option(*DOCUMENTS)
def burn(folder: Path, *, yes: bool, dry_run: bool, as_json: bool, **options: Any) -> int:
    """Write from host to host at line rate until every link was loaded in both directions, and judge each link.

    All hosts take part that are configured and that no job uses; names choose others. The scheduler keeps jobs off
    gold nodes meanwhile. A burn that was killed goes on with the links that it has not loaded.

    The JSON is that of `cable health`, and what the burn adds: `cable disable --from` reads it.

    Exit code 0: every direction of every link was loaded and is healthy; 1: some are not, or were not loaded.
    """
    from clusterctl.operations import cable_burn as operation
    from clusterctl.operations.operation import Control
    from clusterctl_cli.approval import Flags, approve, print_event
    from clusterctl_cli.context import open_context, select_nodes
    from clusterctl_cli.stopping import stoppable

    context = open_context(folder)
    request = operation.CableBurnRequest(
        nodes=select_nodes(context, options),
        rails=options["rails"],
        stage_s=round(options["stage"]),
        for_s=options["for_s"],
        adaptive=options["adaptive"],
        limits=options["limits"],
    )
    preview = operation.preview(context, request)
    if not approve(preview, Flags(yes=yes, dry_run=dry_run)):
        return 0
    with stoppable() as cancelled:
        result = operation.run(context, request, Control(preview.digest, print_event, cancelled))
    if as_json:
        _print_document(result)
    else:
        _print(result)
    return result.exit_code


def _print_document(result: CableBurnResult) -> None:
    from clusterctl_cli.commands.cable_health import health_document
    from clusterctl_cli.formats import print_document

    found = result.report
    burned = {
        "hosts": list(result.hosts),
        "skipped": dict(result.skipped),
        "stages": result.stages,
        "stopped": result.stopped,
        "stuck": dict(result.stuck),
        "directions": len(found.directions) if found else 0,
        "loaded": found.loaded if found else 0,
        "at_goal": found.at_goal if found else 0,
        "goal": result.goal,
    }
    print_document(burned | (health_document(found.health) if found else {"verdict": "inconclusive", "findings": []}))


def _print(result: CableBurnResult) -> None:
    from clusterctl_cli.commands.cable_health import print_health

    found = result.report
    for name, reason in result.skipped.items():
        echo(f"left out: {name}: {reason}")
    if found is None:
        echo("no stage came to its end: no link was measured")
    else:
        print_health(found.health)
        total = len(found.directions)
        echo(
            f"{found.loaded} of {total} directions were loaded, {found.at_goal} reached {result.goal:g} % of their "
            f"rate; {len(result.hosts)} hosts, {result.stages} stages"
        )
    for name, reason in result.stuck.items():
        echo(f"still without jobs: {name}: {reason}")
    if result.stopped:
        echo(f"stopped: {result.stopped}")
