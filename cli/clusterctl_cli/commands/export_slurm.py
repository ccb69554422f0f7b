"""`clusterctl export slurm`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from clusterctl_cli.formats import DOCUMENTS, format_option
from clusterctl_cli.options import dry_run_option, site_option, yes_option
from clusterctl_cli.text import echo


@click.command("slurm")
@click.option(
    "--out",
    "target",
    required=True,
    metavar="DIR",
    type=click.Path(file_okay=False, path_type=Path),
    help="Folder of the files; it is made where it does not exist.",
)
@yes_option
@dry_run_option
@format_option(*DOCUMENTS)
@site_option
def export_slurm(folder: Path, *, target: Path, **options: Any) -> int:
    """Write slurm.conf, gres.conf, topology.conf, cgroup.conf and plugstack.conf from inventory and wiring plan.

    Prints which nodes enter and leave and the difference of each file, and asks. Gold nodes without a hold are in the
    files; a node that leaves stays until Slurm reports that no job runs on it. The files are for playbooks/slurm.yml,
    which gives them to slurmctld: nothing is changed in Slurm by this command.

    Exit code 0: the files are complete; 1: some nodes were left out, or stay although they should leave.
    """
    from dataclasses import replace

    from clusterctl.operations import slurm_files as operation
    from clusterctl.operations.operation import Control
    from clusterctl_cli import output
    from clusterctl_cli.approval import Flags, approve, print_event
    from clusterctl_cli.context import open_context

    flags = Flags.taken(options)
    context, request = open_context(folder), operation.SlurmFilesRequest(folder=target)
    preview = operation.preview(context, request)
    if not flags.as_json:
        for text in preview.differences.values():
            echo(text, err=True)
    if not approve(preview, flags if preview.effects else replace(flags, yes=True)):
        return 0
    result = operation.run(context, request, Control(preview.digest, print_event))
    if not flags.as_json:
        echo(f"{target}: {', '.join(result.written) or 'no file'} written")
    output.print_result(result, as_json=flags.as_json)
    return result.exit_code
