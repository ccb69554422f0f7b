"""`clusterctl worker` on a world of its own: `python -m tests.two.worker SITE WORLD …`; its runs act on the world."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

import click

from clusterctl.fleet.errors import ClusterctlError
from clusterctl.operations.context import Invocation, SiteContext, open_site
from clusterctl.operations.gold_pool import gold_pool
from clusterctl.operations.operation import Event
from clusterctl.operations.worker import Worker, WorkerRequest
from clusterctl_cli.stopping import stoppable
from tests.two.world import GreetingShell, NoBmcs, NoFabric, NoPlaybooks, World, WorldInstaller, WorldOutside


def opened(site: Path, world: World, stops_at: str, invocation: Invocation) -> SiteContext:
    """The site, for a run that acts on the world."""
    context = open_site(site, invocation)
    not_writing = context.journal._database._writer  # stopped during a write it would hold SQLite's lock as well
    pool = gold_pool(context.site)
    installer = WorldInstaller(world, not_writing, stops_at)
    outside = WorldOutside(installer, pool, NoBmcs(), GreetingShell(), NoPlaybooks(), NoFabric())
    return replace(context, connect=lambda _site, _access: outside)


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("site", type=Path)
    parser.add_argument("world", type=Path)
    parser.add_argument("--name", required=True)
    parser.add_argument("--pool", default="pod1")
    parser.add_argument("--reach", nargs="*", default=[])
    parser.add_argument("--stops-at", default="")
    parser.add_argument("--once", action="store_true")
    given = parser.parse_args(argv)

    def report(event: object) -> None:
        if isinstance(event, Event):
            click.echo(f"{event.node} {event.text}", err=True)

    request = WorkerRequest(name=given.name, pool=given.pool, reach=tuple(given.reach), once=given.once, poll_s=0.2)
    try:
        context = open_site(given.site, Invocation(command="worker"))
        with stoppable() as stopping:
            opening = partial(opened, given.site, World(given.world), given.stops_at)
            return Worker(context, request, opening, stopping, report).work()
    except ClusterctlError as error:
        click.echo(f"error: {error}", err=True)
        return error.exit_code


if __name__ == "__main__":
    sys.exit(main())
