"""`clusterctl cable lint`: what is wrong with a wiring plan before a cable is laid."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click

from clusterctl_cli.cabling_options import sheet_option
from clusterctl_cli.formats import DOCUMENTS, format_option
from clusterctl_cli.options import FILE, gathered

if TYPE_CHECKING:
    from clusterctl.cabling.lint.linter import LintResult
    from clusterctl.cabling.lint.plan_index import PlanProblem

_LINES_SHOWN = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class LintOptions:
    """The options of `lint`."""

    files: tuple[Path, ...]
    sheet: str
    fabric: Path | None
    radix: int | None
    oversubscription: float
    any_rail: bool
    separate_rails: bool
    ethernet: bool
    as_json: bool


@click.command("lint")
@click.argument("files", type=FILE, nargs=-1, required=True)
@sheet_option
@click.option("--fabric", type=FILE, help="Output of ibnetdiscover or iblinkinfo: also hold names against GUIDs.")
@click.option("--radix", type=click.IntRange(min=2), help="Ports of every switch.  [default: by model, else 64]")
@click.option(
    "--oversubscription",
    type=click.FloatRange(min=1),
    default=1.0,
    show_default=True,
    help="Host links that may share one uplink of a leaf.",
)
@click.option("--any-rail", is_flag=True, help="Leaves may carry several rails.")
@click.option("--separate-rails", is_flag=True, help="Each rail is meant to be a network of its own.")
@click.option("--ethernet", is_flag=True, help="The files are Ethernet plans: no rails, no tiers.")
@format_option(*DOCUMENTS)
@click.pass_context
@gathered(LintOptions)
def lint(ctx: click.Context, options: LintOptions) -> None:
    """Check wiring plans: CSV, Excel workbooks, .topo or .ndt, gzipped or not. Several FILES are parts of one plan.

    Exit code 0: nothing is wrong; 1: something is; 2: a file could not be read or understood.
    """
    from clusterctl.operations import cabling
    from clusterctl.operations.fabric_files import PlanFiles
    from clusterctl_cli.formats import print_document

    linted = cabling.run_lint(
        cabling.LintRequest(
            plan=PlanFiles(options.files, options.sheet),
            fabric=options.fabric,
            radix=options.radix,
            oversubscription=options.oversubscription,
            any_rail=options.any_rail,
            separate_rails=options.separate_rails,
            ethernet=options.ethernet,
        )
    )
    if options.as_json:
        print_document(_as_json(options.files, linted))
    else:
        _print(linted)
    ctx.exit(1 if linted.flaws else 0)


def _as_json(files: tuple[Path, ...], linted: LintResult) -> dict[str, object]:
    return {
        "files": [str(file) for file in files],
        "links": linted.cables,
        "devices": linted.devices,
        "findings": [_flaw_json(flaw) for flaw in linted.flaws],
        "not_judged": list(linted.unjudged),
    }


def _flaw_json(flaw: PlanProblem) -> dict[str, object]:
    return {
        "kind": flaw.kind.value,
        "subjects": list(flaw.subjects),
        "where": list(flaw.where),
        "cause": flaw.cause,
        "action": flaw.action,
    }


def _print(linted: LintResult) -> None:
    from rich.text import Text

    from clusterctl_cli.cabling_face import wide_console

    console = wide_console()
    for flaw in linted.flaws:
        console.print(Text(f"{flaw.kind.value.replace('_', ' ')}: {flaw.cause}"))
        if flaw.where:
            more = f" and {len(flaw.where) - _LINES_SHOWN} more" if len(flaw.where) > _LINES_SHOWN else ""
            console.print(Text(f"    {', '.join(flaw.where[:_LINES_SHOWN])}{more}", style="dim"))
        console.print(Text(f"    → {flaw.action}", style="yellow"))
    for reason in linted.unjudged:
        console.print(Text(f"not judged: {reason}", style="magenta"))
    count = len(linted.flaws)
    verdict = f"{count} thing{'s' if count != 1 else ''} to repair" if count else "nothing wrong"
    summary = f"{linted.cables} cables between {linted.devices} devices: {verdict}"
    console.print(Text(summary, style="red" if count else "green"))
