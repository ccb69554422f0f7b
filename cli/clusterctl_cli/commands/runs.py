"""`clusterctl runs`: detached runs, which outlive the terminal that ordered them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from clusterctl_cli.completion import complete_runs
from clusterctl_cli.formats import DOCUMENTS, format_option, print_document
from clusterctl_cli.options import decision_options, gathered, site_option
from clusterctl_cli.text import echo_rendered
from clusterctl_cli.watching import View, watch, watch_option

if TYPE_CHECKING:
    from clusterctl.operations.context import SiteContext

run_argument = click.argument("run", metavar="RUN", shell_complete=complete_runs)


@dataclass(frozen=True, slots=True, kw_only=True)
class ShowOptions:
    """The options of `runs show`."""

    run: str
    lines: int
    watching: bool
    folder: Path
    as_json: bool


@click.group()
def runs() -> None:
    """List, show, cancel and retry detached runs: those that --detach or --queue orders.

    They do not end with the terminal.
    """


@runs.command("list")
@watch_option
@click.option("--most", type=click.IntRange(1, 1000), default=50, show_default=True, help="The newest so many.")
@site_option
@format_option()
def list_runs(*, watching: bool, most: int, folder: Path, as_json: bool) -> int:
    """List detached runs, the newest first: waiting, running, ended with its exit code, or lost.

    A run is lost when its process is gone and wrote no end: killed, or the controller restarted. `runs retry` goes on.
    A pool's run is not lost with its worker: it waits for another one. The runs of one order over several pools
    are one line.
    """
    from clusterctl.operations import pods
    from clusterctl.operations.operation import current_time
    from clusterctl.operations.runs import read
    from clusterctl_cli import render_runs
    from clusterctl_cli.context import open_context

    context = open_context(folder)
    if as_json and not watching:
        print_document({"runs": [render_runs.run_json(context, record) for record in read(context, most)]})
        return 0

    def look() -> View:
        found = pods.read(context, most)
        return View(render_runs.runs_text(found, current_time()), found)

    if watching:
        return watch(look)
    echo_rendered(look().text)
    return 0


@runs.command()
@click.argument("run", metavar="[RUN]", default="", shell_complete=complete_runs)
@click.option("--lines", type=click.IntRange(0, 1000), default=10, show_default=True, help="Last lines of its log.")
@watch_option
@site_option
@format_option(*DOCUMENTS)
@gathered(ShowOptions)
def show(options: ShowOptions) -> int:
    """Print a run: who ordered what, where each node stands, the log. Without RUN: the newest.

    With --watch, until the run ends; the exit code is then the run's. Of an order over several pools: its runs.
    """
    from clusterctl.operations.pods import find
    from clusterctl_cli import render_runs
    from clusterctl_cli.context import open_context

    context = open_context(options.folder)
    name = find(context, options.run).name
    if options.watching:
        return follow(context, name, options.lines)
    if options.as_json:
        print_document(render_runs.order_json(context, find(context, name), options.lines))
        return 0
    echo_rendered(render_runs.order_text(context, find(context, name), options.lines))
    return 0


def follow(context: SiteContext, name: str, lines: int = 10) -> int:
    """Print a run, or those of an order, again as it changes, until it ends; return its exit code; 130 for Ctrl-C."""
    from clusterctl.operations.pods import find
    from clusterctl_cli import render_runs

    def look() -> View:
        record = find(context, name)
        text = render_runs.order_text(context, record, lines)
        return View(text, text, None if record.active else 1 if record.exit_code is None else record.exit_code)

    return watch(look)


@runs.command()
@run_argument
@decision_options
def cancel(run: str, folder: Path, **options: Any) -> int:
    """Ask a run to stop, as Ctrl-C does: what is done is kept. A run that has not begun never begins.

    The id of an order over several pools stands for all of its runs.
    """
    from clusterctl.operations import pods
    from clusterctl.operations import runs as operation
    from clusterctl_cli.approval import Flags, carry_out
    from clusterctl_cli.context import open_context

    context = open_context(folder)
    request = operation.CancelRequest(run=pods.find(context, run).name)
    return carry_out(operation, context, request, Flags.taken(options))


@runs.command()
@run_argument
@decision_options
def retry(run: str, folder: Path, **options: Any) -> int:
    """Order a run's request again, with a new preview: steps go on where each node stands.

    It runs detached again, or waits for a worker of its pool again.
    """
    from clusterctl.operations import detached, pods
    from clusterctl_cli.approval import Flags, approve
    from clusterctl_cli.context import open_context

    flags, context = Flags.taken(options), open_context(folder, thorough=True)
    pods.require_one(context, run)
    record, request = detached.again(context, run)
    preview = detached.operation_of(record.operation).preview(context, request)
    if not approve(preview, flags):
        return 0
    detached.close_lost(context, record)
    origin = detached.Origin(
        command=record.command,
        approved=preview.digest,
        earlier=record.name,
        pool=record.pool,
        priority=record.priority,
        nodes=tuple(effect.node for effect in preview.effects),
    )
    ordered = detached.order(context, request, origin)
    return print_ordered(context, ordered, as_json=flags.as_json)


@runs.command(hidden=True)
@run_argument
@site_option
def execute(run: str, folder: Path) -> int:
    """Carry out a run that is ordered; its own process does it, and no other can do it again."""
    from clusterctl.operations.detached import execute as carry_out
    from clusterctl_cli.progress import ProgressView
    from clusterctl_cli.stopping import stoppable

    with stoppable(repeatable=True) as cancelled, ProgressView(table_only=True) as view:
        return carry_out(folder, run, cancelled, view.on_event)


def print_ordered(context: SiteContext, record: Any, *, as_json: bool) -> int:
    """Print a run that was ordered just now, and how to follow it; return the exit code."""
    from clusterctl_cli import render_runs

    if as_json:
        print_document(render_runs.run_json(context, record))
    else:
        echo_rendered(render_runs.ordered_text(record))
    return 0


def print_group(context: SiteContext, name: str, *, as_json: bool) -> int:
    """Print the runs of an order over several pools, and how to follow them; return the exit code."""
    from clusterctl.operations.pods import find
    from clusterctl_cli import render_runs

    group = find(context, name)
    if as_json:
        print_document(render_runs.order_json(context, group, 0))
    else:
        echo_rendered(render_runs.order_text(context, group, 0))
        echo_rendered(f"\nThey go on without this terminal. Follow them: clusterctl runs show {group.name} --watch")
    return 0
