"""`clusterctl burnin export DIR`: recorded evidence of nodes, as `burnin judge DIR` reads it."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from clusterctl_cli.formats import format_option, print_document
from clusterctl_cli.options import limit_option, site_option
from clusterctl_cli.text import echo

if TYPE_CHECKING:
    from clusterctl.operations.recordings import ExportResult


@click.command("export")
@click.argument("target", metavar="DIR", type=click.Path(file_okay=False, path_type=Path))
@limit_option
@site_option
@format_option()
@click.pass_context
def export(ctx: click.Context, /, target: Path, folder: Path, *, as_json: bool, **options: Any) -> None:
    """Write the raw evidence of each node's last burn-in to DIR/NODE.json, for burnin judge.

    DIR is made, or is empty; only its owner may read what is written: addresses, serials and kernel logs. No probe asks
    for a password. The format of the files: docs/how-to/burnin-judge.md.

    Exit code 0: all evidence of each node was written; 1: some node has none, or not all of it is left; 2: wrong usage.
    """
    from clusterctl.operations import recordings
    from clusterctl_cli.context import open_context, select_nodes

    context = open_context(folder)
    request = recordings.ExportRequest(target=target, limit=select_nodes(context, options, "limit"))
    result = recordings.run_export(context, request)
    if as_json:
        nodes = [asdict(node) for node in result.nodes]
        missing = [{"name": name, "why": why} for name, why in result.not_exported.items()]
        document = {"folder": str(result.folder), "simulated": result.simulated, "nodes": nodes}
        print_document({**document, "not_exported": missing})
    else:
        _print(result)
    ctx.exit(result.exit_code)


def _print(result: ExportResult) -> None:
    for name, why in result.not_exported.items():
        echo(f"{name}: {why}", err=True)
    for node in result.nodes:
        if node.lost:
            echo(f"{node.name}: {node.lost} pieces of its evidence are no longer in the journal", err=True)
    left_out = {command for node in result.nodes for command in node.left_out}
    if left_out:
        echo(f"left out, since no check runs it (loads among them): {len(left_out)} commands", err=True)
    echo(f"{len(result.nodes)} of {len(result.nodes) + len(result.not_exported)} nodes written to {result.folder}")
