"""`clusterctl plan`."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from clusterctl.operations.selection import matching
from clusterctl_cli.formats import format_option, print_document
from clusterctl_cli.options import limit_option, say_notices, site_option, verbose_option

if TYPE_CHECKING:
    from clusterctl.operations.host_configuration import PlannedNetwork


@click.command()
@site_option
@limit_option
@click.option("--network", is_flag=True, help="Show the network that each host will be given, as netplan says it.")
@format_option()
@verbose_option
def plan(folder: Path, *, network: bool, as_json: bool, **options: Any) -> None:
    """Say what bootstrap would do, node by node. Touches nothing; checks the whole site directory on the way."""
    from clusterctl.operations.bootstrap import planned
    from clusterctl.operations.host_configuration import planned_networks
    from clusterctl.operations.operation import current_time
    from clusterctl.operations.trust import notices
    from clusterctl_cli import render
    from clusterctl_cli.context import open_context, select_nodes

    context = open_context(folder, thorough=True)
    unproven = notices(context.site)
    say_notices(unproven)
    fleet = context.nodes()
    wanted = matching((node.name for node in fleet), select_nodes(context, options, "limit"))
    shown = [node for node in fleet if node.name in wanted]
    now = current_time()
    if network:
        _say_networks(planned_networks(context, shown), as_json=as_json)
        return
    if as_json:
        rows = [dict(zip(("would", "destructive"), planned(node), strict=True)) for node in shown]
        nodes = [render.node_json(node, now) | row for node, row in zip(shown, rows, strict=True)]
        print_document({"nodes": nodes, "warnings": unproven})
        return
    click.echo(render.plan_text(shown))
    click.echo(f"\n{render.counts(shown)}. Nothing was touched.")


def _say_networks(networks: Iterable[PlannedNetwork], *, as_json: bool) -> None:
    if as_json:
        print_document({"networks": [network.json() for network in networks]})
        return
    for network in networks:
        click.echo(network)
