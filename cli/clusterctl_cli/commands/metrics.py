"""`clusterctl metrics`."""

from __future__ import annotations

from pathlib import Path

import click

from clusterctl_cli.options import site_option
from clusterctl_cli.text import echo


@click.command()
@click.option(
    "--write",
    "file",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Write them to FILE (*.prom) for node_exporter's textfile collector; replaces it.",
)
@site_option
def metrics(*, file: Path | None, folder: Path) -> None:
    """Print the site's metrics in Prometheus's text format; changes nothing.

    docs/reference/metrics.md lists them. A timer writes them each minute.
    """
    from clusterctl.operations.metrics import export, write
    from clusterctl_cli.context import open_context

    context = open_context(folder)
    if file is None:
        echo(export(context).decode(), nl=False)
    else:
        echo(f"written: {file}, {write(context, file)} bytes", err=True)
