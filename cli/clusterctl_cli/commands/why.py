"""`clusterctl why NODE…`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from clusterctl_cli.formats import format_option, print_document
from clusterctl_cli.options import nodes_argument, site_option
from clusterctl_cli.text import echo_rendered, terminal_width
from clusterctl_cli.watching import View, watch, watch_option

if TYPE_CHECKING:
    from clusterctl.operations.context import SiteContext


@click.command()
@nodes_argument
@watch_option
@site_option
@format_option()
def why(nodes: tuple[str, ...], *, selectors: tuple[str, ...], watching: bool, folder: Path, as_json: bool) -> int:
    """Explain why nodes are where they are, what to do about it, and which evidence that rests on."""
    from clusterctl.operations.explanation import explain
    from clusterctl.operations.json_documents import why_json
    from clusterctl.operations.selection import selected, selected_names
    from clusterctl_cli.context import open_context

    context = open_context(folder)
    names = selected(context, selected_names(context, nodes, selectors))
    if as_json and not watching:
        print_document({"nodes": [why_json(explain(context, state)) for state in context.states(names)]})
        return 0
    if watching:
        return watch(lambda: _look(context, names))
    echo_rendered(_look(context, names).text)
    return 0


def _look(context: SiteContext, names: list[str]) -> View:
    from clusterctl.operations.explanation import explain
    from clusterctl_cli.console import VisibleConsole
    from clusterctl_cli.render_why import why_text

    console = VisibleConsole(highlight=False)
    explanations = [explain(context, state) for state in context.states(names)]
    with console.capture() as captured:
        for explanation in explanations:
            console.print(why_text(explanation, terminal_width()), soft_wrap=True)
    return View(captured.get().rstrip("\n"), [explanation.node.last_seq for explanation in explanations])
