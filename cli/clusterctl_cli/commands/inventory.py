"""`clusterctl inventory --list | --host NODE`: an inventory script of Ansible."""

from __future__ import annotations

from pathlib import Path

import click

from clusterctl.fleet.errors import UsageError
from clusterctl_cli.completion import complete_nodes
from clusterctl_cli.formats import print_document
from clusterctl_cli.options import read_options


@click.command()
@click.option("--list", "whole", is_flag=True, help="Print groups, and the variables of all nodes.")
@click.option("--host", metavar="NODE", shell_complete=complete_nodes, help="Print the variables of one node.")
@read_options
def inventory(*, whole: bool, host: str | None, folder: Path) -> None:
    """Print the fleet as Ansible's dynamic inventory, in JSON.

    Groups are stages, SKUs (sku_NAME), racks (rack_NAME), gold (the gold pool) and held. Retired nodes are left out.
    Ansible calls it through inventory/clusterctl.sh.
    """
    if whole == (host is not None):
        remedy = "give one of --list and --host NODE"
        raise UsageError("it prints the list or one node", where="clusterctl inventory", remedy=remedy)
    from clusterctl.operations.inventory import read, read_host
    from clusterctl_cli.context import open_context

    context = open_context(folder)
    print_document(read(context) if host is None else read_host(context, host))
