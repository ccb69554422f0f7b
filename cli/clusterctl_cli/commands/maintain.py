"""`clusterctl maintain`: rolling changes of the pool by a plan."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from clusterctl_cli.command_groups import MAINTAIN, LazyGroup
from clusterctl_cli.completion import complete_plans
from clusterctl_cli.formats import format_option, print_document
from clusterctl_cli.options import decision_options, queue_options, site_option
from clusterctl_cli.text import echo, echo_rendered
from clusterctl_cli.watching import View, watch, watch_option

if TYPE_CHECKING:
    from clusterctl.operations.maintain import MaintainRequest

RUN = "run"
plan_argument = click.argument("plan", metavar="NAME", shell_complete=complete_plans)


class PlanGroup(LazyGroup):
    """Runs the plan that is named in place of a command: `maintain PLAN.yml` is `maintain run PLAN.yml`."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        return super().parse_args(ctx, self.with_run(args, ctx.help_option_names))

    def with_run(self, args: list[str], helps: Collection[str] = ("--help",)) -> list[str]:
        """Return the arguments with `run` before them, where they begin with a plan or an option of `run`."""
        return [RUN, *args] if args and args[0] not in helps and self._is_plan(args[0]) else args

    def _is_plan(self, word: str) -> bool:
        """Return whether the word is no command: an option of `run`, or the path of a file."""
        if word in self.table:
            return False
        return word.startswith("-") or "." in word or "/" in word or Path(word).exists()


@click.group(name="maintain", cls=PlanGroup, table=MAINTAIN)
def maintain() -> None:
    """Change the pool wave by wave: drivers, kernels, any role, BIOS settings and firmware.

    `clusterctl maintain PLAN.yml` begins a plan, and goes on with it after a kill (docs/how-to/maintain.md). Each node
    is drained, and changed only once its jobs have ended; it is gold again once its checks and a burn-in have passed.
    """


@click.command(name=RUN)
@click.argument("file", metavar="PLAN.yml", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@queue_options
@decision_options
def run(file: Path, folder: Path, **options: Any) -> int:
    """Begin the plan of a file, or go on with it where its run was killed: canaries first, then wave by wave.

    A plan that was paused, or that halted, goes on with `maintain resume` alone.

    --dry-run prints the waves and the time that they take by what was measured, without the waiting for jobs. Exit code
    0: all nodes are changed; 1: some failed or were left alone, or too many failed and the plan halted.
    """
    from clusterctl.operations.maintain import MaintainRequest, plan_of
    from clusterctl_cli.context import open_context

    context = open_context(folder, thorough=True)
    return _carry_out(context, MaintainRequest(plan=plan_of(context, file)), options)


@click.command()
@plan_argument
@queue_options
@decision_options
def resume(plan: str, folder: Path, **options: Any) -> int:
    """Go on with a plan that was paused or halted, or whose run was killed.

    Nodes that failed have another turn once they are repaired and released; so have nodes that were skipped.
    """
    from clusterctl.operations.maintain import resuming
    from clusterctl_cli.context import open_context

    context = open_context(folder, thorough=True)
    return _carry_out(context, resuming(context, plan), options)


@click.command()
@plan_argument
@queue_options
@decision_options
def rollback(plan: str, folder: Path, **options: Any) -> int:
    """Take the change of a plan back on the nodes that have it: the site's values, or those of its `rollback`."""
    from clusterctl.operations.maintain import MaintainRequest, known_plan
    from clusterctl_cli.context import open_context

    context = open_context(folder, thorough=True)
    return _carry_out(context, MaintainRequest(plan=known_plan(context, plan), back=True), options)


@click.command()
@plan_argument
@click.option("--reason", default="", help="Why; kept in the plan's history with your name.")
@decision_options
def pause(plan: str, reason: str, folder: Path, **options: Any) -> int:
    """Let a plan begin with no more nodes; `maintain resume` goes on. A change that has begun ends first."""
    return _stop(plan, reason, folder, options, final=False)


@click.command()
@plan_argument
@click.option("--reason", default="", help="Why; kept in the plan's history with your name.")
@decision_options
def stop(plan: str, reason: str, folder: Path, **options: Any) -> int:
    """End a plan for good. A change that has begun ends first; `maintain rollback` takes the others back."""
    return _stop(plan, reason, folder, options, final=True)


@click.command()
@click.argument("plan", metavar="[NAME]", default="", shell_complete=complete_plans)
@watch_option
@site_option
@format_option()
def status(*, plan: str, watching: bool, folder: Path, as_json: bool) -> int:
    """List the plans, one line each; with NAME, where each node of it stands."""
    from clusterctl.operations.json_documents import plan_json
    from clusterctl.operations.maintenance_status import every, found
    from clusterctl_cli import render_maintain
    from clusterctl_cli.context import open_context

    context = open_context(folder)
    if as_json and not watching:
        plans = [found(context, plan)] if plan else every(context)
        print_document({"plans": [plan_json(one) for one in plans]})
        return 0

    def look() -> View:
        if not plan:
            plans = every(context)
            return View(render_maintain.plans_text(plans), plans)
        one = found(context, plan)
        return View(render_maintain.plan_text(one), one)

    if watching:
        return watch(look)
    echo_rendered(look().text)
    return 0


def _carry_out(context: Any, request: MaintainRequest, options: dict[str, Any]) -> int:
    """Preview the plan with its expected time, ask, run it, print what became of each node."""
    from clusterctl.operations import maintain as operation
    from clusterctl.operations.operation import Control
    from clusterctl.operations.serial import to_data
    from clusterctl_cli import render_maintain
    from clusterctl_cli.approval import Flags, approve, logged
    from clusterctl_cli.output import print_result
    from clusterctl_cli.progress import ProgressView
    from clusterctl_cli.queueing import QueuePlacement, place
    from clusterctl_cli.stopping import stoppable

    flags, placement = Flags.taken(options), QueuePlacement.taken(options)
    preview = operation.preview(context, request)
    if flags.dry_run and flags.as_json:
        expected = to_data(operation.expected(context, request))
        print_document({"dry_run": True, **to_data(preview), "expected": expected})
        return 0
    if flags.dry_run or not flags.yes:
        echo(render_maintain.forecast_text(operation.expected(context, request)), err=not flags.dry_run)
    if not approve(preview, flags):
        return 0
    if placement.elsewhere:
        return place(context, request, preview, placement, as_json=flags.as_json)
    with logged(context) as log, stoppable() as cancelled, ProgressView() as view:
        result = operation.run(context, request, Control(preview.digest, view.on_event, cancelled))
    print_result(result, as_json=flags.as_json)
    log.print_path(result.exit_code)
    return result.exit_code


def _stop(plan: str, reason: str, folder: Path, options: dict[str, Any], *, final: bool) -> int:
    from clusterctl.operations import maintenance_control as operation
    from clusterctl_cli.approval import Flags, carry_out
    from clusterctl_cli.context import open_context

    context = open_context(folder)
    request = operation.StopRequest(plan=plan, reason=reason, final=final)
    return carry_out(operation, context, request, Flags.taken(options))
