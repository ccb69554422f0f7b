"""`clusterctl bootstrap --until install --yes` on a world of its own: `python -m tests.two.controller SITE WORLD …`.

Composed of the same parts as the command itself.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import click

from clusterctl.fleet.errors import ClusterctlError
from clusterctl.operations.bootstrap import Order, conduct
from clusterctl.operations.context import open_office
from clusterctl.operations.pool import gold_pool
from clusterctl_cli.main import cli
from tests.two.world import GreetingShell, NoBmcs, NoFabric, NoPlaybooks, World, WorldInstaller, WorldOutside


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("site", type=Path)
    parser.add_argument("world", type=Path)
    parser.add_argument("--limit", nargs="*", default=[])
    parser.add_argument("--stops-at", default="")
    parser.add_argument("--json", action="store_true")
    told = parser.parse_args()
    bootstrap = cli.get_command(click.Context(cli), "bootstrap")
    assert bootstrap is not None
    with click.Context(cli, info_name="clusterctl") as root, click.Context(bootstrap, root, "bootstrap"):
        try:
            office = open_office(told.site)
            not_writing = office.journal._database._writer  # stopped amid a write it would hold SQLite's lock as well
            installer = WorldInstaller(World(told.world), not_writing, told.stops_at)
            pool = gold_pool(office.site)
            outside = WorldOutside(installer, pool, NoBmcs(), GreetingShell(), NoPlaybooks(), NoFabric())
            order = Order(("discover", "install"), tuple(told.limit), yes=True, as_json=told.json)
            return conduct(office, outside, order)
        except ClusterctlError as error:
            click.echo(f"error: {error}", err=True)
            return error.exit_code


if __name__ == "__main__":
    sys.exit(main())
