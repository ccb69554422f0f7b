"""`clusterctl burnin nightly`: for cron and timers."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click

from clusterctl_cli.formats import format_option
from clusterctl_cli.options import dry_run_option, gathered, queue_options, site_option, yes_option
from clusterctl_cli.text import echo

if TYPE_CHECKING:
    from clusterctl.operations.night import NightResult


@dataclass(frozen=True, slots=True, kw_only=True)
class NightlyOptions:
    """The options of `burnin nightly`."""

    folder: Path
    window: str | None
    budget: int | None
    detach: bool
    pool: str
    priority: int
    yes: bool
    dry_run: bool
    as_json: bool


@click.command("nightly")
@site_option
@click.option("--window", metavar="HH:MM-HH:MM", help="Instead of the site's, in its time zone.")
@click.option("--budget", type=click.IntRange(1, 100), metavar="PERCENT", help="Of the gold nodes, out at a time.")
@queue_options
@yes_option
@dry_run_option
@format_option()
@gathered(NightlyOptions)
def nightly(options: NightlyOptions) -> int:
    """Burn in gold nodes that are idle, the ones with the oldest evidence first, and give them back.

    The site names the window, how many at a time and how old evidence may become
    (docs/how-to/nightly.md). Timers pass --yes. One line when all is well; on a terminal, progress meanwhile.

    Exit code 0: all that were tested are gold again; 1: some are not, or evidence is too old; 2: it is not the time, or
    the site's budget cannot keep what it promises.
    """
    from clusterctl.operations import night as operation
    from clusterctl.operations.operation import Control
    from clusterctl_cli.approval import Flags, approve, logged
    from clusterctl_cli.context import open_context
    from clusterctl_cli.progress import ProgressView
    from clusterctl_cli.queueing import QueuePlacement, place_on
    from clusterctl_cli.stopping import stoppable

    placement = QueuePlacement.of(detach=options.detach, pool=options.pool, priority=options.priority)
    context = open_context(options.folder, thorough=True)
    request = operation.NightRequest(window=options.window, budget=options.budget)
    approved = None
    if options.dry_run or not options.yes:
        preview = operation.preview(context, request)
        if not approve(preview, Flags(yes=options.yes, dry_run=options.dry_run, as_json=options.as_json)):
            return 0
        approved = preview.digest
    if placement.elsewhere:
        nodes = operation.may_take(context)
        return place_on(context, request, approved or "", placement, nodes, as_json=options.as_json)
    with logged(context) as log, stoppable() as cancelled, ProgressView(table_only=True) as view:
        result = operation.run(context, request, Control(approved, view.on_event, cancelled))
    print_night(result, as_json=options.as_json)
    log.print_path(result.exit_code)
    return result.exit_code


def print_night(result: NightResult, *, as_json: bool) -> None:
    """Print the result as JSON with the keys of `NightResult`, as one line where all is well, or as a report."""
    if result.spares is not None and result.spares.missing:
        echo(f"too few spares: {result.spares}", err=as_json)
    if as_json:
        _print_document(result)
    else:
        _print_text(result)


def _print_document(result: NightResult) -> None:
    from clusterctl.operations.json_documents import links_json, node_json
    from clusterctl.operations.operation import current_time
    from clusterctl_cli.formats import print_document

    failed = [node_json(node, current_time()) for node in result.failed]
    document: dict[str, object] = {"tested": list(result.tested), "failed": failed, "overdue": list(result.overdue)}
    document["links"] = links_json(result.links)
    print_document({**document, "passed_over": result.passed_over, "stuck": result.stuck, "ended": result.ended})


def _print_text(result: NightResult) -> None:
    good = len(result.tested) - len(result.failed)
    counted = f"{len(result.tested)} nodes tested, {good} gold again" if result.tested else "no node was tested"
    echo(f"nightly: {counted}; {result.ended}")
    for node in result.failed:
        echo(f"\n{node.name} ({node.location}) is {node.stage.value}: {node.cause}\n  {node.remedy}")
    if result.links is not None:
        from clusterctl_cli.render_fabric import links_text

        echo(links_text(result.links))
    for name, why in result.stuck.items():
        echo(f"\n{name} could not be given back: {why}")
    if result.overdue:
        some = f"{', '.join(result.overdue[:10])}{' …' if result.overdue[10:] else ''}"
        echo(f"\nevidence is too old of {len(result.overdue)} gold nodes: {some}")
    if result.exit_code and result.passed_over:
        echo("\npassed over: " + "; ".join(f"{name}: {why}" for name, why in result.passed_over.items()))
