"""`clusterctl why NODE…`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from clusterctl_cli.formats import format_option, print_document
from clusterctl_cli.options import nodes_argument, read_options
from clusterctl_cli.watching import View, watch, watch_option

if TYPE_CHECKING:
    from clusterctl.fleet.state import NodeState
    from clusterctl.operations.context import SiteContext


@click.command()
@nodes_argument
@watch_option
@read_options
@format_option()
def why(nodes: tuple[str, ...], *, selectors: tuple[str, ...], watching: bool, folder: Path, as_json: bool) -> int:
    """Explain why nodes are where they are, what to do about it, and which evidence that rests on."""
    from clusterctl.operations.selection import selected, selected_names
    from clusterctl_cli.context import open_context

    context = open_context(folder)
    names = selected(context, selected_names(context, nodes, selectors))
    if as_json and not watching:
        print_document({"nodes": [_json(context, state) for state in context.states(names)]})
        return 0
    if watching:
        return watch(lambda: _look(context, names))
    click.echo(_look(context, names).text)
    return 0


def _json(context: SiteContext, state: NodeState) -> dict[str, Any]:
    from clusterctl.fleet.bmc.accounts import rotation
    from clusterctl.fleet.decisions.waiver import waiver_of
    from clusterctl.operations.operation import current_time
    from clusterctl.operations.reports import repeated
    from clusterctl_cli import render
    from clusterctl_cli.render_why import password_json

    now, waivers = current_time(), state.waivers
    return render.node_json(state, now) | {
        "findings": [render.finding_json(finding, waiver_of(finding, waivers, now)) for finding in state.findings],
        "bmc_password": password_json(rotation(context.journal.history("node", state.id))),
        "repeated": repeated(context, state),
    }


def _look(context: SiteContext, names: list[str]) -> View:
    from rich.console import Console

    from clusterctl.fleet.bmc.accounts import rotation
    from clusterctl.operations.operation import current_time
    from clusterctl.operations.reports import repeated
    from clusterctl_cli.render_why import why_text

    console, states = Console(highlight=False), context.states(names)
    with console.capture() as captured:
        for state in states:
            evidence = context.evidence(digest for finding in state.findings for digest in finding.evidence)
            password = rotation(context.journal.history("node", state.id))
            text = why_text(state, evidence, current_time(), password, repeated(context, state))
            console.print(text, soft_wrap=True)
    return View(captured.get().rstrip("\n"), [state.last_seq for state in states])
