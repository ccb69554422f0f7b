"""`clusterctl burnin script`: the program that asks a node what the checks want to know, for other ways than SSH."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from clusterctl_cli.options import site_option


@click.command("script")
@click.option(
    "--output",
    "target",
    type=click.Path(dir_okay=False, path_type=Path),
    help="A file that is not there yet; without it, stdout.",
)
@site_option
def script(target: Path | None, folder: Path) -> None:
    """Write the program that asks a node all that the checks of the site's suite want to know.

    Python 3.9 and root run it on a node, whatever way it comes there (Slurm, Ansible, a console); it changes nothing,
    and prints one JSON document. Kept as DIR/NODE.json, that is judged by burnin judge (docs/how-to/burnin-judge.md).
    """
    from clusterctl.operations.recordings import node_program, write_node_program

    if target is None:
        sys.stdout.buffer.write(node_program(folder))
    else:
        write_node_program(folder, target)
