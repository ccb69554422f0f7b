"""The site of one command line."""

from __future__ import annotations

from pathlib import Path

import click

from clusterctl.operations.context import Invocation, SiteContext, open_site


def open_context(folder: Path, *, thorough: bool = False) -> SiteContext:
    """Return the site that `--site` names, opened; its journal is closed when the command ends."""
    context = open_site(folder, Invocation(command=_command()), thorough=thorough)
    command = click.get_current_context(silent=True)
    if command is not None:
        command.call_on_close(context.journal.close)
    return context


def _command() -> str:
    """Return the command without arguments (`burnin nightly`); empty outside of a command."""
    names: list[str] = []
    context = click.get_current_context(silent=True)
    while context is not None and context.parent is not None:
        names.insert(0, context.info_name or "")
        context = context.parent
    return " ".join(names)
