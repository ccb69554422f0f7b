"""Shell completion of node names; click completes commands and options by itself.

A shell asks the command: `eval "$(_CLUSTERCTL_COMPLETE=bash_source clusterctl)"`, likewise `zsh_source` and
`fish_source`.
"""

from __future__ import annotations

from pathlib import Path

import click
from click.shell_completion import CompletionItem


def complete_nodes(ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Return the names that begin with `incomplete`, each with its stage; none where the site cannot be read."""
    from clusterctl.fleet.errors import ClusterctlError
    from clusterctl.operations.context import open_site

    folder = ctx.params.get("folder") or Path()
    try:
        context = open_site(Path(folder))
    except ClusterctlError:  # the shell shows nothing; the command itself prints the error
        return []
    try:
        nodes = context.nodes()
    finally:
        context.journal.close()
    return [CompletionItem(node.name, help=node.stage.value) for node in nodes if node.name.startswith(incomplete)]
