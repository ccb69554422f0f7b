"""`clusterctl job`: jobs under supervision, and what became of jobs."""

from __future__ import annotations

import click

from clusterctl_cli.command_groups import JOB, LazyGroup


@click.group(name="job", cls=LazyGroup, table=JOB)
def job() -> None:
    """Run jobs under supervision, and explain failed and slow ones."""
