"""`clusterctl init DIR`."""

from __future__ import annotations

from pathlib import Path

import click

from clusterctl_cli.text import echo


@click.command()
@click.argument("folder", type=click.Path(path_type=Path))
def init(folder: Path) -> None:
    """Write a commented site directory into FOLDER (new or empty)."""
    from clusterctl.operations import preparation

    for file in preparation.init(folder):
        echo(f"wrote {file}")
    echo(f"next: fill in {folder / 'site.yml'}, put the secrets in place, then clusterctl plan --site {folder}")
