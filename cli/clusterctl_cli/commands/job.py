"""`clusterctl job`: what became of jobs."""

from __future__ import annotations

import click

from clusterctl_cli.command_groups import JOB, LazyGroup


@click.group(name="job", cls=LazyGroup, table=JOB)
def job() -> None:
    """Explain failed and slow jobs."""
