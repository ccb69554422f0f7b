"""The site of one command line."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from clusterctl.operations.context import Invocation, SiteContext, open_site
from clusterctl.operations.selection import selected_names


def open_context(folder: Path, *, thorough: bool = False) -> SiteContext:
    """Return the site that `--site` names, opened; its journal is closed when the command ends."""
    context = open_site(folder, Invocation(command=command_name()), thorough=thorough)
    command = click.get_current_context(silent=True)
    if command is not None:
        command.call_on_close(context.journal.close)
    return context


def select_nodes(context: SiteContext, options: dict[str, Any], name: str = "nodes") -> tuple[str, ...]:
    """Return the names and patterns that a command line chooses nodes with, and take them out of its options.

    `name`: the parameter that holds the names, `nodes` or `limit`. With `-l` they are the names of its matches.
    """
    where = "NODE" if name == "nodes" else f"--{name}"
    return selected_names(context, options.pop(name), options.pop("selectors"), where)


def command_name() -> str:
    """Return the command without arguments (`burnin nightly`); empty outside of a command."""
    names: list[str] = []
    context = click.get_current_context(silent=True)
    while context is not None and context.parent is not None:
        names.insert(0, context.info_name or "")
        context = context.parent
    return " ".join(names)
