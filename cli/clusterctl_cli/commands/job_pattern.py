"""`clusterctl job pattern FILE`: how a job is slow, and where to look."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from clusterctl_cli.formats import DOCUMENTS, format_option, print_document
from clusterctl_cli.options import FILE
from clusterctl_cli.text import echo

if TYPE_CHECKING:
    from clusterctl.operations.job_pattern import PatternResult


@click.command("pattern")
@click.argument("file", type=FILE)
@click.option(
    "--expected",
    type=click.FloatRange(min=0, min_open=True),
    metavar="SECONDS",
    help="Seconds that a step should take: without it, a job that is slow all the time looks healthy.",
)
@format_option(*DOCUMENTS)
@click.pass_context
def pattern(ctx: click.Context, file: Path, expected: float | None, as_json: bool) -> None:
    """Classify how a job is slow. FILE is a log of Megatron-LM, NeMo or nanoGPT, or has the seconds of one step a line.

    Exit code 0: nothing is to be done; 1: a pattern needs a look; 2: FILE has no times of steps.
    """
    from clusterctl.operations import job_pattern

    result = job_pattern.run(job_pattern.PatternRequest(file=file, expected=expected))
    if as_json:
        print_document(
            {
                "steps": result.steps,
                "median_seconds": result.median,
                "expected_seconds": expected,
                "patterns": [
                    {
                        "pattern": one.pattern.value,
                        "alarm": one.meaning.alarm,
                        "layer": one.meaning.layer.value,
                        "begins": one.begins,
                        "figures": one.figures,
                        "cause": one.meaning.cause,
                        "look": one.meaning.look,
                    }
                    for one in result.patterns
                ],
            }
        )
    else:
        _print(result)
    ctx.exit(result.exit_code)


def _print(result: PatternResult) -> None:
    echo(f"{result.steps} steps from number {result.first}, {result.median:.3g} s in the median")
    for one in result.patterns:
        echo(f"\n{one.pattern.value}{f': {one.figures}' if one.figures else ''}")
        echo(f"  cause  {one.meaning.cause} ({one.meaning.layer.value})")
        echo(f"  do     {one.meaning.look}")
