"""`clusterctl burnin export DIR`: recorded evidence of nodes, as `burnin judge DIR` reads it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from clusterctl.fleet.errors import UsageError
from clusterctl.operations.selection import matching
from clusterctl_cli.formats import format_option, print_document
from clusterctl_cli.options import limit_option, site_option, verbose_option

if TYPE_CHECKING:
    from clusterctl.operations.context import SiteContext
    from clusterctl.operations.exporting import Taken


@click.command("export")
@click.argument("target", metavar="DIR", type=click.Path(file_okay=False, path_type=Path))
@limit_option
@site_option
@format_option()
@verbose_option
@click.pass_context
def export(ctx: click.Context, /, target: Path, folder: Path, *, as_json: bool, **options: Any) -> None:
    """Write the raw evidence of each node's last burn-in to DIR/NODE.json, for burnin judge.

    DIR is made, or is empty; only its owner may read what is written: addresses, serials and kernel logs. No probe asks
    for a password. The format of the files: docs/how-to/burnin-judge.md.

    Exit code 0: all evidence of each node was written; 1: some node has none, or not all of it is left; 2: wrong usage.
    """
    from clusterctl.operations.exporting import last_burnin
    from clusterctl_burnin.registry import CHECKS
    from clusterctl_cli.context import open_context, select_nodes

    context = open_context(folder)
    nodes = {node.name: node for node in context.nodes()}
    chosen = sorted(matching(nodes, select_nodes(context, options, "limit")))
    probes = [probe for check in CHECKS.values() for probe in check.probes]
    _prepare(target)
    written: dict[str, Taken] = {}
    missing: dict[str, str] = {}
    for name in chosen:
        taken = last_burnin(context, nodes[name], probes)
        if isinstance(taken, str):
            missing[name] = taken
        else:
            _write(target / f"{name}.json", taken)
            written[name] = taken
    _tell(target, written, missing, context, as_json=as_json)
    ctx.exit(0 if not missing and not any(taken.lost for taken in written.values()) else 1)


def _prepare(target: Path) -> None:
    """Old recordings beside new ones would be judged as one fleet."""
    from clusterctl.edges.disk import disk_explained

    with disk_explained("the folder cannot be made", target):
        target.mkdir(mode=0o700, parents=True, exist_ok=True)
        if any(target.iterdir()):
            raise UsageError("is not empty", where=str(target), remedy="name a folder that is empty or not there yet")
        target.chmod(0o700)


def _write(file: Path, taken: Taken) -> None:
    from clusterctl.edges.disk import disk_explained, write_whole

    text = json.dumps(taken.export.document, indent=1, ensure_ascii=False)
    with disk_explained("the recording cannot be written", file):
        write_whole(file, f"{text}\n".encode(), mode=0o600, over=False)


def _tell(
    target: Path, written: dict[str, Taken], missing: dict[str, str], context: SiteContext, *, as_json: bool
) -> None:
    if as_json:
        document = {
            "folder": str(target),
            "simulated": context.site.settings.simulated,
            "nodes": [_json(name, taken) for name, taken in written.items()],
            "not_exported": [{"name": name, "why": why} for name, why in missing.items()],
        }
        print_document(document)
        return
    for name, why in missing.items():
        click.echo(f"{name}: {why}", err=True)
    for name, taken in written.items():
        if taken.lost:
            click.echo(f"{name}: {taken.lost} pieces of its evidence are no longer in the journal", err=True)
    left_out = sorted({command for taken in written.values() for command in taken.export.left_out})
    if left_out:
        click.echo(f"left out, since no check runs it (loads among them): {len(left_out)} commands", err=True)
    click.echo(f"{len(written)} of {len(written) + len(missing)} nodes written to {target}")


def _json(name: str, taken: Taken) -> dict[str, Any]:
    export = taken.export
    return {"name": name, "probes": export.probes, "lost": taken.lost, "left_out": list(export.left_out)}
