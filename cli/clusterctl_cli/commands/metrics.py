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
@click.option(
    "--targets",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Write the nodes' exporters to FILE (*.json) for Prometheus's file_sd_configs; replaces it.",
)
@site_option
def metrics(*, file: Path | None, targets: Path | None, folder: Path) -> None:
    """Print the site's metrics in Prometheus's text format; changes nothing.

    docs/reference/metrics.md lists them. A timer writes them each minute. With --targets, nothing is printed.
    """
    from clusterctl.operations.metrics import export, write
    from clusterctl.operations.scrape_targets import write_targets
    from clusterctl_cli.context import open_context

    context = open_context(folder)
    if targets is not None:
        echo(f"written: {targets}, {write_targets(context, targets)} targets", err=True)
    if file is None and targets is None:
        echo(export(context), nl=False)
    if file is not None:
        echo(f"written: {file}, {write(context, file)} bytes", err=True)
