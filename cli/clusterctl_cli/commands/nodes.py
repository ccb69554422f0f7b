"""`clusterctl nodes`."""

from __future__ import annotations

import json
from pathlib import Path

import click

from clusterctl.operations.selection import matching
from clusterctl_cli.options import json_option, limit_option, site_option, verbose_option

STAGES = ["seen", "discovered", "installed", "configured", "cabled", "burned-in", "gold", "quarantined", "retired"]


@click.command()
@site_option
@click.option("--stage", type=click.Choice(STAGES), help="Only nodes that stand here.")
@limit_option
@json_option
@verbose_option
def nodes(folder: Path, stage: str | None, limit: tuple[str, ...], as_json: bool) -> None:
    """List the fleet: where each node stands, since when, and what keeps it back."""
    from clusterctl.operations.expiry import expired_note, expiry_of
    from clusterctl.operations.operation import current_time
    from clusterctl.operations.pool import spares
    from clusterctl_cli import render
    from clusterctl_cli.context import open_context
    from clusterctl_cli.render_fabric import faults_note

    context = open_context(folder)
    fleet = context.nodes()
    wanted = matching((node.name for node in fleet), limit)
    shown = [node for node in fleet if node.name in wanted and stage in (None, node.stage.value)]
    now = current_time()
    if as_json:
        click.echo(json.dumps({"nodes": [render.node_json(node, now) for node in shown]}))
        return
    click.echo(render.nodes_text(shown, now))
    click.echo(f"\n{render.counts(shown)}" + render.lab_note(context.site.settings.simulated))
    if (asked := spares(context)) is not None and asked.missing:
        click.echo(f"too few spares: {asked}")
    if note := expired_note(shown, expiry_of(context), now):
        click.echo(note)
    if note := faults_note(context.faults()):
        click.echo(note)
