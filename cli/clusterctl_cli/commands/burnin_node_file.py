"""`clusterctl burnin node-file`: the checks in one file for nodes, for Slurm's health check and prolog."""

from __future__ import annotations

from pathlib import Path

import click

from clusterctl_cli.options import site_option
from clusterctl_cli.text import echo


@click.command("node-file")
@click.argument("target", metavar="FILE", type=click.Path(dir_okay=False, path_type=Path))
@site_option
def node_file(target: Path, folder: Path) -> None:
    """Write the checks of the site's suite as one program, which runs on a node without a controller.

    `FILE check` needs Python 3.10 and root, and nothing else. It holds the site's limits and the serials of its nodes;
    write it again when these change. Exit code 0: no failure; 1: a check failed; 4: nothing failed, and something could
    not be measured; 2: the file does not know the node.
    """
    from clusterctl.operations import node_file as operation
    from clusterctl_cli.context import open_context

    count = operation.write(open_context(folder), target)
    echo(f"{target}: the checks for {count} nodes", err=True)
