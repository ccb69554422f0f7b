"""`clusterctl job stacks [JOBID] [--logs DIR]`: the stacks of a hung job's ranks, equal ones together."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from clusterctl.fleet.errors import UsageError
from clusterctl_cli.formats import DOCUMENTS, format_option, print_document
from clusterctl_cli.options import site_option
from clusterctl_cli.remote import remote, server_option
from clusterctl_cli.text import echo

if TYPE_CHECKING:
    from clusterctl.operations.job_stacks import StacksResult

_SHOWN = 12


@click.command("stacks")
@click.argument("job", metavar="[JOBID]", required=False)
@click.option(
    "--logs",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    metavar="DIR",
    help="Recorded stacks of the job's ranks, instead of JOBID.",
)
@server_option
@site_option
@format_option(*DOCUMENTS)
def stacks(job: str | None, logs: Path | None, folder: Path, as_json: bool) -> None:
    """Group the stacks of a hung job's ranks; the smallest group, the suspect, comes first.

    With JOBID, a running job of Slurm, the stacks are taken on all its nodes: the kernel's, and the interpreter's where
    py-spy is installed and the process does not hang in the kernel. py-spy reads without a pause (--nonblocking).

    With --logs, DIR/HOST/pyspy_rank_N.json has the output of py-spy dump --json, DIR/HOST/kernel_stack_rank_N that of
    /proc/PID/stack.
    """
    if (job is None) is (logs is None):
        raise UsageError("give either a job or recorded stacks", where="JOBID", remedy="give JOBID, or --logs DIR")
    document = _stacks(job, logs, folder)
    if as_json:
        print_document(document)
        return
    for group in document["groups"]:
        _print(group)
    for unread in document["unread"]:
        echo(f"not read: {unread}", err=True)


def _stacks(job: str | None, logs: Path | None, folder: Path) -> Mapping[str, Any]:
    if job is not None and (client := remote()) is not None:
        return client.stacks(job)
    from clusterctl.operations import job_stacks
    from clusterctl.operations.job_documents import stacks_json

    return stacks_json(_taken(job, folder) if job else job_stacks.run(job_stacks.StacksRequest(logs=logs or Path())))


def _taken(job: str, folder: Path) -> StacksResult:
    from clusterctl.operations import job_stacks
    from clusterctl.operations.operation import Control
    from clusterctl_cli.approval import observed, print_event
    from clusterctl_cli.context import open_context

    context = open_context(folder)
    with observed(context) as (log, cancelled):
        result = job_stacks.run_job(context, job, Control(cancelled=cancelled, on_event=print_event))
    log.print_path(0)
    return result


def _print(group: Mapping[str, Any]) -> None:
    named = ", ".join(map(str, group["ranks"][:_SHOWN])) + (" …" if len(group["ranks"]) > _SHOWN else "")
    hosts = ", ".join(group["hosts"][:_SHOWN]) + (" …" if len(group["hosts"]) > _SHOWN else "")
    count = len(group["ranks"])
    echo(f"{count} {'rank' if count == 1 else 'ranks'}: {named}{f' on {hosts}' if hosts else ''}")
    for frame in group["kernel"][:_SHOWN]:
        echo(f"  kernel  {frame}")
    for frame in group["frames"][:_SHOWN]:
        echo(f"  {frame}")
    echo()
