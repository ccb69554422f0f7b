"""`clusterctl cable burnplan`: how to load every link of a fabric, from its live forwarding tables, offline."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import click

from clusterctl.fleet.durations import parse_duration
from clusterctl_cli.formats import DOCUMENTS, format_option
from clusterctl_cli.options import FILE, gathered
from clusterctl_cli.text import echo

if TYPE_CHECKING:
    from rich.console import Console

    from clusterctl.cabling.burn.plan import BurnPlan

_NAMED = 40
"""Unreached links that are printed by name; --json has all."""
_MEASURE = "adaptive routing: what is loaded is measured from port counters, not computed; see `cable coverage`"


def _duration(_ctx: click.Context, _param: click.Parameter, value: str) -> timedelta:
    """Return the duration that an option names, which is above zero."""
    found = parse_duration(value)
    if not found:
        raise click.BadParameter(f"{value!r} is no duration: give one like 90s, 10min, 4h or 1d")
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class BurnplanOptions:
    """The options of `burnplan`."""

    fts: Path
    fabric: Path
    opensm_log: Path | None
    window: timedelta
    stage: timedelta
    pair_round: timedelta
    rounds: int
    every_pair: bool
    adaptive: bool
    as_json: bool


@click.command("burnplan")
@click.option("--fts", type=FILE, required=True, help="Output of dump_fts, gzipped or not.")
@click.option("--fabric", type=FILE, required=True, help="Output of ibnetdiscover or iblinkinfo of the same moment.")
@click.option("--opensm-log", type=FILE, help="The subnet manager's log: the routing engine of the tables.")
@click.option(
    "--window", callback=_duration, metavar="SPAN", default="4h", show_default=True, help="The time that there is."
)
@click.option(
    "--stage", callback=_duration, metavar="SPAN", default="10min", show_default=True, help="How long each stage runs."
)
@click.option(
    "--round",
    "pair_round",
    callback=_duration,
    metavar="SPAN",
    default="2min",
    show_default=True,
    help="Likewise each round of pairs.",
)
@click.option("--rounds", type=click.IntRange(min=0), default=6, show_default=True, help="Rounds of pairs.")
@click.option("--every-pair", is_flag=True, help="Each host with each other, instead of --rounds; up to 32 hosts.")
@click.option("--adaptive", is_flag=True, help="The switches route adaptively.")
@format_option(*DOCUMENTS)
@click.pass_context
@gathered(BurnplanOptions)
def burnplan(ctx: click.Context, options: BurnplanOptions) -> None:
    """Plan stages of flows that load every link in both directions, one flow on each, and rounds of pairs.

    Exit code 0: every directed link is reached, over balanced tables; 1: not so, with which links and why; 2: a file
    could not be read or understood, or the burn takes longer than the window.
    """
    from clusterctl.cabling.burn.plan import Lengths, check_window  # here, not above: keeps --help fast
    from clusterctl.operations.fabric_plans import BurnPlanRequest, run_burn_plan

    lengths = Lengths(options.stage, options.pair_round, options.rounds, every_pair=options.every_pair)
    request = BurnPlanRequest(tables=options.fts, fabric=options.fabric, opensm_log=options.opensm_log, lengths=lengths)
    plan = run_burn_plan(request)
    adaptive = options.adaptive or plan.routing.adaptive
    if options.as_json:
        check_window(plan, options.window)
        _print_document(plan, adaptive=adaptive)
    else:
        echo(f"the burn takes {_duration_text(plan.duration)} of a window of {_duration_text(options.window)}")
        check_window(plan, options.window)
        _print_for_people(plan, adaptive=adaptive)
    ctx.exit(0 if plan.balanced else 1)


def _print_document(plan: BurnPlan, *, adaptive: bool) -> None:
    from clusterctl_cli.formats import print_document

    label = plan.routes.label
    document: dict[str, object] = {
        "verdict": "pass" if plan.balanced else "fail",
        "seconds": plan.duration.total_seconds(),
        "links": len(plan.routes.links),
        "reached": plan.reached,
        "coverage": "to be measured" if adaptive else "computed",
        "routing": {
            "engine": plan.routing.engine,
            "flows_on_fullest_link": plan.routing.worst,
            "complaint": plan.routing.problem,
        },
        "stages": [
            {
                "links": len(stage.links),
                "flows": [
                    {"from": str(flow.source.name), "to": str(flow.target.name), "links": [label(n) for n in flow.way]}
                    for flow in stage.flows
                ],
            }
            for stage in plan.stages.stages
        ],
        "unreached": [{"link": one.link, "reason": one.reason} for one in plan.unreached],
        "lost": [{"from": source, "to": target} for source, target in plan.lost],
        "rounds": [
            {"distance": one.distance.value, "pairs": [list(pair) for pair in one.pairs]} for one in plan.rounds
        ],
        "unpaired": list(plan.unpaired),
    }
    print_document(document)


def _print_for_people(plan: BurnPlan, *, adaptive: bool) -> None:
    from rich.text import Text

    from clusterctl_cli.cabling_face import wide_console

    console = wide_console()
    if plan.routing.problem:
        console.print(Text(plan.routing.problem, style="bold red"))
    elif plan.routing.engine:
        console.print(Text(f"tables made by {plan.routing.engine}"))
    for number, stage in enumerate(plan.stages.stages, start=1):
        console.print(Text(f"stage {number}: {len(stage.flows)} flows load {len(stage.links)} directed links"))
    for one in plan.rounds:
        console.print(Text(f"pairs across {one.distance.value}: {len(one.pairs)}"))
    if plan.unpaired:
        console.print(Text(f"in no round: {', '.join(plan.unpaired)}"))
    _print_gaps(plan, console)
    if adaptive:
        console.print(Text(_MEASURE, style="yellow"))
    total = f"{plan.reached} of {len(plan.routes.links)} directed links are loaded, each by one flow"
    console.print(Text(total, style="green" if plan.balanced else "red"))


def _print_gaps(plan: BurnPlan, console: Console) -> None:
    """Print the links that no stage reaches, by reason and name."""
    from rich.text import Text

    by_reason: dict[str, list[str]] = {}
    for one in plan.unreached:
        by_reason.setdefault(one.reason, []).append(one.link)
    for source, target in plan.lost:
        by_reason.setdefault("packets never arrive: the tables drop them or lead them in circles", []).append(
            f"{source} → {target}"
        )
    for reason, links in by_reason.items():
        console.print(Text(f"not loaded, {len(links)}: {reason}", style="bold"))
        for link in links[:_NAMED]:
            console.print(Text(f"  {link}"))
        if len(links) > _NAMED:
            console.print(Text(f"  … and {len(links) - _NAMED} more, all named with --json"))


def _duration_text(length: timedelta) -> str:
    """Return a duration like `4 h 30 min`."""
    minutes, seconds = divmod(round(length.total_seconds()), 60)
    hours, minutes = divmod(minutes, 60)
    parts = (f"{hours} h" if hours else "", f"{minutes} min" if minutes else "", f"{seconds} s" if seconds else "")
    return " ".join(part for part in parts if part) or "0 s"
