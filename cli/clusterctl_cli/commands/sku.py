"""`clusterctl sku new|calibrate`: SKU files from discovered machines, limits from healthy nodes."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

import click

from clusterctl_cli.completion import complete_nodes
from clusterctl_cli.formats import DOCUMENTS, format_option, print_document
from clusterctl_cli.options import site_option
from clusterctl_cli.text import echo

if TYPE_CHECKING:
    from clusterctl.operations.sku import Calibrated


@click.group()
def sku() -> None:
    """Write SKU files from discovered machines; propose limits from healthy nodes."""


@sku.command(short_help="Write a SKU file from a discovered machine.")
@click.option("--from", "node", required=True, metavar="NODE", shell_complete=complete_nodes, help="A discovered node.")
@click.option("--name", default="", help="Of the SKU and its file; else made of manufacturer and model.")
@format_option(*DOCUMENTS)
@site_option
def new(node: str, name: str, folder: Path, *, as_json: bool) -> None:
    """Write skus/NAME.yml of the site from what the BMC of NODE reported.

    Fields that a machine cannot decide are marked with DECIDE. An existing file is never overwritten.
    """
    from clusterctl.operations import sku as operation
    from clusterctl.operations.serial import to_data
    from clusterctl_cli.context import open_context

    result = operation.new_sku(open_context(folder), operation.NewSkuRequest(node=node, name=name))
    if as_json:
        print_document(to_data(result))
        return
    echo(f"wrote {result.file}")
    for field, question in result.open.items():
        echo(f"  decide {field}: {question}")
    echo(f"next: decide these, add {result.name} to skus: in {folder / 'site.yml'}, then clusterctl plan")


@sku.command(short_help="Propose limits from healthy nodes.")
@click.argument("name", metavar="SKU")
@format_option(*DOCUMENTS)
@site_option
def calibrate(name: str, folder: Path, *, as_json: bool) -> None:
    """Propose limits from what the healthy nodes of a SKU measured. Changes nothing.

    Healthy is a node that is gold, or whose last burn-in lacked nothing but figures to be judged by. The proposal is a
    limits file on stdout; why a limit has no proposal is on stderr. No proposal is laxer than the figure in force.
    """
    from clusterctl.operations import sku as operation
    from clusterctl.operations.serial import to_data
    from clusterctl_cli.context import open_context

    result = operation.calibrate(open_context(folder), operation.CalibrateRequest(sku=name))
    if as_json:
        print_document(to_data(result))
        return
    _print_unchanged(result.figures)
    echo(result.text or f"# no proposal from {result.nodes} healthy nodes of {name}", nl=not result.text)


def _print_unchanged(figures: Iterable[Calibrated]) -> None:
    """Print on stderr which limits have no proposal, and why; those without any figure only by their number."""
    unmeasured = 0
    for one in figures:
        if not one.values and one.now is not None:
            unmeasured += 1
        elif one.proposed is None:
            now = "open" if one.now is None else f"{one.now:g}"
            echo(f"{one.name} stays {now}: {one.why}", err=True)
    if unmeasured:
        echo(f"{unmeasured} other limits stay as they are: the journal has no figure of them", err=True)
