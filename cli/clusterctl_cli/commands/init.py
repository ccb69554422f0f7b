"""`clusterctl init DIR`."""

from __future__ import annotations

from pathlib import Path

import click


@click.command()
@click.argument("folder", type=click.Path(path_type=Path))
def init(folder: Path) -> None:
    """Write a commented site directory into FOLDER (new or empty)."""
    from clusterctl.operations import preparation

    for file in preparation.init(folder):
        click.echo(f"wrote {file}")
    click.echo(f"next: fill in {folder / 'site.yml'}, put the secrets in place, then clusterctl plan --site {folder}")
