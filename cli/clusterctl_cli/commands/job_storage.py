"""`clusterctl job storage JOBID…`: which of these jobs floods the storage."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from clusterctl_cli.formats import DOCUMENTS, format_option, print_document
from clusterctl_cli.options import site_option
from clusterctl_cli.text import brief, echo

if TYPE_CHECKING:
    from clusterctl.operations.job_storage import StorageResult

_MB = 1e6
_ROW = "{:<20} {:<36} {:>6} {:>12} {:>12} {:>12}"


@click.command("storage")
@click.argument("jobs", metavar="JOBID...", nargs=-1, required=True)
@click.option(
    "--seconds",
    type=click.FloatRange(1, 300),
    default=10.0,
    show_default=True,
    help="Between the two readings of each node.",
)
@site_option
@format_option(*DOCUMENTS)
def storage(*, jobs: tuple[str, ...], seconds: float, folder: Path, as_json: bool) -> int:
    """Print what running jobs ask of NFS and Lustre: operations on metadata, and bytes, a second.

    The counters of each node are read twice; those of a job's nodes are added up, and the job with the most operations
    comes first. Jobs that share a node are one row. Exit code 1: a node could not be read.
    """
    from clusterctl.operations import job_storage as operation
    from clusterctl.operations.operation import Control
    from clusterctl_cli.approval import observed
    from clusterctl_cli.context import open_context

    context = open_context(folder)
    with observed(context) as (log, cancelled):
        request = operation.StorageRequest(jobs=jobs, seconds=seconds)
        result = operation.run(context, request, Control(cancelled=cancelled))
    code = 1 if result.unread else 0
    if as_json:
        print_document(_document(result))
    else:
        _print(result)
    log.print_path(code)
    return code


def _document(result: StorageResult) -> dict[str, Any]:
    return {
        "loads": [
            {
                "jobs": list(one.jobs),
                "filesystem": one.filesystem,
                "nodes": one.nodes,
                "metadata_per_second": round(one.rates.metadata, 3),
                "read_bytes_per_second": round(one.rates.read_bytes, 1),
                "written_bytes_per_second": round(one.rates.written_bytes, 1),
            }
            for one in result.loads
        ],
        "unread": dict(result.unread),
    }


def _print(result: StorageResult) -> None:
    if result.loads:
        echo(_ROW.format("job", "file system", "nodes", "metadata/s", "read MB/s", "written MB/s"))
    for one in result.loads:
        echo(
            _ROW.format(
                brief(", ".join(one.jobs), 20),
                brief(one.filesystem, 36),
                one.nodes,
                f"{one.rates.metadata:.0f}",
                f"{one.rates.read_bytes / _MB:.1f}",
                f"{one.rates.written_bytes / _MB:.1f}",
            )
        )
    if not result.loads:
        echo("no node that was read has NFS or Lustre mounted", err=True)
    for name, reason in result.unread.items():
        echo(f"not read: {name}: {reason}", err=True)
