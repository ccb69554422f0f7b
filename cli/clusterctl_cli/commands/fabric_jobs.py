"""`clusterctl fabric jobs`: what UFM does for actions."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from clusterctl_cli.formats import DOCUMENTS, format_option
from clusterctl_cli.options import duration_seconds, site_option
from clusterctl_cli.text import echo

if TYPE_CHECKING:
    from clusterctl.fleet.fabric.manager_jobs import ManagerJob


@click.command()
@click.argument("ids", metavar="[JOB...]", nargs=-1)
@click.option(
    "--wait", "wait_s", callback=duration_seconds, metavar="SPAN", help="Wait until they have ended, so long at most."
)
@format_option(*DOCUMENTS)
@site_option
def jobs(*, ids: tuple[str, ...], wait_s: float | None, as_json: bool, folder: Path) -> int:
    """List the jobs of UFM; JOB names some by their numbers. With --wait it follows them to their end.

    Exit code 0: all are completed; 1: some have warnings or errors, still run, or have a status that is not known.
    """
    from clusterctl.operations.fabric_alarms import site_jobs
    from clusterctl.operations.operation import Control
    from clusterctl.operations.serial import to_data
    from clusterctl.operations.ufm_jobs import JobsRequest, run
    from clusterctl_cli.approval import print_event
    from clusterctl_cli.context import open_context
    from clusterctl_cli.formats import print_document
    from clusterctl_cli.stopping import stoppable

    reader = site_jobs(open_context(folder))
    with stoppable() as cancelled:
        result = run(reader, JobsRequest(ids=ids, wait_s=wait_s or 0.0), Control(None, print_event, cancelled))
    if as_json:
        print_document({"jobs": to_data(result)})
        return result.exit_code
    for job in result.jobs:
        echo(f"{job.id}: {_text(job)}")
        for part in result.parts.get(job.id, ()):
            echo(f"  {part.id}: {_text(part)}")
    if result.unread:
        echo(f"not read: {result.unread}", err=True)
    return result.exit_code


def _text(job: ManagerJob) -> str:
    progress = f" {job.progress} %" if job.progress is not None else ""
    return "; ".join(filter(None, (f"{job.status_text}{progress}", job.description, job.objects, job.summary)))
