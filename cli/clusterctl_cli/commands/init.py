"""`clusterctl init DIR`."""

from __future__ import annotations

from pathlib import Path

import click


@click.command()
@click.argument("folder", type=click.Path(path_type=Path))
def init(folder: Path) -> None:
    """Write a commented site directory into FOLDER (new or empty)."""
    from clusterctl.edges.site.roles import write_site

    for file in write_site(folder):
        click.echo(f"wrote {file}")
    click.echo(f"next: fill in {folder / 'site.yml'}, put the secrets in place, then clusterctl plan --site {folder}")
