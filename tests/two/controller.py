"""`clusterctl bootstrap --until install --yes` on a world of its own: `python -m tests.two.controller SITE WORLD …`.

Composed of the same parts as the command itself.
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import replace
from pathlib import Path

import click

from clusterctl.fleet.errors import ClusterctlError
from clusterctl.fleet.node import Step
from clusterctl.operations import bootstrap
from clusterctl.operations.bootstrap import RunRequest
from clusterctl.operations.context import Invocation, open_site
from clusterctl.operations.gold_pool import gold_pool
from clusterctl.operations.operation import Control
from clusterctl_cli.progress import ProgressView
from clusterctl_cli.render import print_run
from clusterctl_cli.stopping import stoppable
from tests.two.world import GreetingShell, NoBmcs, NoFabric, NoPlaybooks, World, WorldInstaller, WorldOutside


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("site", type=Path)
    parser.add_argument("world", type=Path)
    parser.add_argument("--limit", nargs="*", default=[])
    parser.add_argument("--stops-at", default="")
    parser.add_argument("--json", action="store_true")
    reported = parser.parse_args()
    try:
        context = open_site(reported.site, Invocation(command="bootstrap"))
        not_writing = context.journal._database._writer  # stopped during a write it would hold SQLite's lock as well
        installer = WorldInstaller(World(reported.world), not_writing, reported.stops_at)
        pool = gold_pool(context.site)
        outside = WorldOutside(installer, pool, NoBmcs(), GreetingShell(), NoPlaybooks(), NoFabric())
        request = RunRequest(steps=(Step.DISCOVER, Step.INSTALL), limit=tuple(reported.limit))
        with stoppable() as cancelled, ProgressView() as view:
            control = Control(None, view.on_event, cancelled)
            result = bootstrap.run(replace(context, connect=lambda _site, _access: outside), request, control)
        print_run(context, result, as_json=reported.json)
    except ClusterctlError as error:
        click.echo(f"error: {error}", err=True)
        return error.exit_code
    return result.exit_code


if __name__ == "__main__":
    sys.exit(main())
