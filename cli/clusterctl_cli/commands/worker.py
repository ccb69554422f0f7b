"""`clusterctl worker` and `clusterctl workers`: who carries out the runs that --queue orders."""

from __future__ import annotations

import os
import socket
from pathlib import Path
from typing import Any

import click

from clusterctl_cli.formats import DOCUMENTS, format_option, print_document
from clusterctl_cli.options import pool_name, site_option
from clusterctl_cli.text import echo_rendered
from clusterctl_cli.watching import View, watch, watch_option


def _name(_ctx: click.Context, _param: click.Parameter, value: str) -> str:
    return pool_name(value)


def _pool(_ctx: click.Context, _param: click.Parameter, value: str) -> str:
    from clusterctl.operations.pods import AUTO

    if value == AUTO:
        raise click.BadParameter(f"--queue {AUTO} means no pool of its own: give another name")
    return pool_name(value)


def _own_name() -> str:
    return f"{socket.gethostname()[:50]}-{os.getpid()}"


@click.command()
@click.option("--pool", metavar="NAME", default="default", show_default=True, callback=_pool, help="Take its runs.")
@click.option("--reach", metavar="CIDR", multiple=True, help="Only runs whose BMCs and hosts are in here; repeatable.")
@click.option(
    "--name", default=_own_name, show_default="HOST-PID", callback=_name, help="In the journal; of no other worker."
)
@click.option("--once", is_flag=True, help="End when no run is free.")
@site_option
def worker(folder: Path, *, reach: tuple[str, ...], **options: Any) -> int:
    """Carry out runs that --queue orders, one at a time, until SIGTERM or Ctrl-C. More of them are more processes.

    A stopped worker gives its run back, and another one goes on; so it does once the claim of a lost worker has
    expired (the site's claims.lease_s).
    """
    from clusterctl.operations import worker as operation
    from clusterctl_cli.approval import print_event
    from clusterctl_cli.context import open_context
    from clusterctl_cli.stopping import stoppable

    request = operation.WorkerRequest(reach=reach, **options)
    context = open_context(folder, thorough=True)
    with stoppable() as stopping:
        return operation.work(context, request, stopping, print_event)


@click.command()
@watch_option
@site_option
@format_option(*DOCUMENTS)
def workers(*, watching: bool, folder: Path, as_json: bool) -> int:
    """List the workers: pool, reach, when they were last seen, what they do; and the runs that wait for one.

    A worker that is lost stays in the list for a day.
    """
    from clusterctl.operations.operation import current_time
    from clusterctl.operations.serial import to_data
    from clusterctl.operations.workers import read
    from clusterctl_cli.context import open_context
    from clusterctl_cli.render_runs import workers_text

    context = open_context(folder)
    if as_json and not watching:
        print_document(to_data(read(context)))
        return 0

    def look() -> View:
        found = read(context)
        return View(workers_text(found, current_time()), [(one.name, one.alive, one.run) for one in found.workers])

    if watching:
        return watch(look)
    echo_rendered(look().text)
    return 0
