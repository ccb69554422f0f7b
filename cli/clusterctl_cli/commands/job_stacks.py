"""`clusterctl job stacks --logs DIR`: the stacks of a hung job's ranks, equal ones together."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from clusterctl_cli.formats import DOCUMENTS, format_option, print_document
from clusterctl_cli.text import echo

if TYPE_CHECKING:
    from clusterctl.operations.job_stacks import StackGroup

_SHOWN = 12


@click.command("stacks")
@click.option(
    "--logs",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    required=True,
    help="A folder with stacks of the job's ranks.",
)
@format_option(*DOCUMENTS)
def stacks(logs: Path, as_json: bool) -> None:
    """Group the stacks of a hung job's ranks; the smallest group, the suspect, comes first.

    DIR/HOST/pyspy_rank_N.json has the output of py-spy dump --json, DIR/HOST/kernel_stack_rank_N that of
    /proc/PID/stack.
    """
    from clusterctl.operations import job_stacks

    result = job_stacks.run(job_stacks.StacksRequest(logs=logs))
    if as_json:
        groups = [
            {
                "ranks": list(one.ranks),
                "hosts": list(one.hosts),
                "kernel": list(one.kernel),
                "frames": list(one.frames),
            }
            for one in result.groups
        ]
        print_document({"groups": groups, "unread": list(result.unread)})
        return
    for group in result.groups:
        _print(group)
    for unread in result.unread:
        echo(f"not read: {unread}", err=True)


def _print(group: StackGroup) -> None:
    named = ", ".join(map(str, group.ranks[:_SHOWN])) + (" …" if len(group.ranks) > _SHOWN else "")
    hosts = ", ".join(group.hosts[:_SHOWN]) + (" …" if len(group.hosts) > _SHOWN else "")
    count = len(group.ranks)
    echo(f"{count} {'rank' if count == 1 else 'ranks'}: {named}{f' on {hosts}' if hosts else ''}")
    for frame in group.kernel[:_SHOWN]:
        echo(f"  kernel  {frame}")
    for frame in group.frames[:_SHOWN]:
        echo(f"  {frame}")
    echo()
