"""`clusterctl export`: the site's state for other systems."""

from __future__ import annotations

import click

from clusterctl_cli.command_groups import EXPORT, LazyGroup


@click.group(cls=LazyGroup, table=EXPORT)
def export() -> None:
    """Write the site's state to other systems: NetBox, Slurm."""
