"""`clusterctl plan`."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from clusterctl_cli.formats import format_option, print_document
from clusterctl_cli.options import limit_option, print_warnings, site_option
from clusterctl_cli.text import echo, terminal_width

if TYPE_CHECKING:
    from clusterctl.operations.plan import PlannedNetwork, PlanResult


@click.command()
@site_option
@limit_option
@click.option("--network", is_flag=True, help="Show the network that each host will be given, as netplan prints it.")
@format_option()
@click.pass_context
def plan(ctx: click.Context, /, folder: Path, *, network: bool, as_json: bool, **options: Any) -> None:
    """Print what bootstrap would do, node by node. Changes nothing; checks the whole site directory.

    Exit code 1: nodes lack cables in the wiring plan, or have another number of adapters there than their SKU.
    """
    from clusterctl.operations import plan as operation
    from clusterctl_cli.context import open_context, select_nodes

    context = open_context(folder, thorough=True)
    request = operation.PlanRequest(nodes=select_nodes(context, options, "limit"))
    result = operation.run(context, request)
    print_warnings((*result.warnings, *(gap.message for gap in result.wiring)))
    if network:
        _print_networks(operation.run_networks(context, request), as_json=as_json)
        return
    _print(result, as_json=as_json)
    ctx.exit(result.exit_code)


def _print(result: PlanResult, *, as_json: bool) -> None:
    from clusterctl.operations.json_documents import node_json
    from clusterctl.operations.operation import current_time
    from clusterctl_cli import render

    if as_json:
        now = current_time()
        nodes = [node_json(one.node, now) | {"would": one.steps, "destructive": one.destroys} for one in result.nodes]
        gaps = [{"kind": gap.kind.value, "hosts": gap.hosts, "message": gap.message} for gap in result.wiring]
        print_document({"nodes": nodes, "warnings": result.warnings, "wiring": gaps})
        return
    echo(render.plan_text(result, terminal_width()))
    echo(f"\n{render.counts(one.node for one in result.nodes)}. Nothing was touched.")


def _print_networks(networks: Iterable[PlannedNetwork], *, as_json: bool) -> None:
    if as_json:
        print_document({"networks": [_network_json(network) for network in networks]})
        return
    for network in networks:
        echo(_network_text(network))


def _network_json(network: PlannedNetwork) -> dict[str, Any]:
    return {
        "name": network.name,
        "address": network.address,
        "netplan": network.document,
        "problem": network.problem,
    }


def _network_text(network: PlannedNetwork) -> str:
    head = f"{network.name}: {network.address or 'address by its installer'}"
    if network.problem:
        return f"{head}\n  {network.problem}\n"
    texts = [f"{path}:\n{text}" for path, text in network.files.items()] or ["  the installer's own way\n"]
    return "\n".join((head, *texts))
