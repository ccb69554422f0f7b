"""`clusterctl cable recheck`: what the work on the cables has repaired, and what is left."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click

from clusterctl_cli.cabling_options import guids_option, host_gbps_option, required_plan_option, sheet_option
from clusterctl_cli.formats import DOCUMENTS, format_option
from clusterctl_cli.options import FILE, gathered
from clusterctl_cli.text import echo

if TYPE_CHECKING:
    from clusterctl.cabling.explain.verify import Recheck


@dataclass(frozen=True, slots=True, kw_only=True)
class RecheckOptions:
    """The options of `recheck`."""

    plan: tuple[Path, ...]
    sheet: str
    before: Path
    after: Path
    guids: Path | None
    host_gbps: float | None
    as_json: bool


@click.command("recheck")
@required_plan_option
@sheet_option
@click.option("--before", type=FILE, required=True, help="the fabric that the work was planned on")
@click.option("--after", type=FILE, required=True, help="the fabric as it is now")
@guids_option
@host_gbps_option
@format_option(*DOCUMENTS)
@click.pass_context
@gathered(RecheckOptions)
def recheck(ctx: click.Context, options: RecheckOptions) -> None:
    """Compare two recorded fabrics with a plan: which findings are gone, which are left, which are new.

    Exit code 0: everything is as planned now; 1: something is not; 2: a file could not be read or understood.
    """
    from clusterctl.operations import cabling
    from clusterctl.operations.fabric_files import PlanFiles

    request = cabling.RecheckRequest(
        plan=PlanFiles(options.plan, options.sheet),
        before=options.before,
        after=options.after,
        guids=options.guids,
        host_gbps=options.host_gbps,
    )
    result = cabling.run_recheck(request)
    if options.as_json:
        _print_document(result.found)
    else:
        _print(result.found)
    ctx.exit(result.exit_code)


def _print_document(found: Recheck) -> None:
    from clusterctl_cli.cabling_json import explanation_json
    from clusterctl_cli.formats import print_document

    document: dict[str, object] = {
        "repaired": [explanation_json(explanation) for explanation in found.repaired],
        "left": [explanation_json(explanation) for explanation in found.left],
        "new": [explanation_json(explanation) for explanation in found.new],
        "cables_not_as_proposed": [[str(port) for port in sorted(ends)] for ends in found.undone],
        "moves": sum(explanation.moves for explanation in (*found.left, *found.new)),
    }
    print_document(document)


def _print(found: Recheck) -> None:
    from clusterctl_cli.cabling_face import print_by_rack, wide_console

    console = wide_console()
    for heading, explanations in (("left", found.left), ("new", found.new)):
        if explanations:
            echo(f"{heading}:")
            print_by_rack(console, explanations)
    echo(f"{len(found.repaired)} repaired, {len(found.left)} left, {len(found.new)} new")
