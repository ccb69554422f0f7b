"""`clusterctl cable recheck`: what the work on the cables has repaired, and what is left."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from clusterctl.operations.judging import collector_paused
from clusterctl_cli.cabling_options import guids_option, host_gbps_option
from clusterctl_cli.formats import DOCUMENTS, format_option
from clusterctl_cli.options import FILE

if TYPE_CHECKING:
    from clusterctl.cabling.explain.verify import Recheck


@click.command("recheck", short_help="Compare two fabrics with a plan: what is repaired.")
@click.option("--plan", type=FILE, required=True, help="wiring.csv, ibtopodiff .topo or UFM .ndt, gzipped or not")
@click.option("--before", type=FILE, required=True, help="the fabric that the work was planned on")
@click.option("--after", type=FILE, required=True, help="the fabric as it is now")
@guids_option
@host_gbps_option
@format_option(*DOCUMENTS)
@click.pass_context
def recheck(
    ctx: click.Context,
    /,
    *,
    plan: Path,
    before: Path,
    after: Path,
    guids: Path | None,
    host_gbps: float | None,
    as_json: bool,
) -> None:
    """Compare two recorded fabrics with a plan: which findings are gone, which are left, which are new.

    Exit code 0: everything is as planned now; 1: something is not; 2: a file could not be read or understood.
    """
    from clusterctl.cabling.explain.verify import recheck as compare  # here, not above: keeps --help fast
    from clusterctl.cabling.explain.verify import verify
    from clusterctl.operations.fabric_files import fabric_in, guids_in, plan_in

    with collector_paused():
        planned, known = plan_in(plan), guids_in(guids)
        first, second = (verify(planned, fabric_in(file), known, host_gbps=host_gbps) for file in (before, after))
        found = compare(first, second)
    if as_json:
        _print_document(found)
    else:
        _print(found)
    ctx.exit(1 if second.explanations else 0)


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
            click.echo(f"{heading}:")
            print_by_rack(console, explanations)
    click.echo(f"{len(found.repaired)} repaired, {len(found.left)} left, {len(found.new)} new")
