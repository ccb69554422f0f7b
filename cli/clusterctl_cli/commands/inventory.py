"""`clusterctl inventory --list|--host NODE`: the fleet as a dynamic Ansible inventory."""

from __future__ import annotations

import json
from pathlib import Path

import click

from clusterctl.fleet.errors import UsageError
from clusterctl_cli.completion import complete_nodes
from clusterctl_cli.options import site_option
from clusterctl_cli.text import echo


@click.command()
@click.option("--list", "everything", is_flag=True, help="Print all groups and hosts.")
@click.option("--host", metavar="NODE", shell_complete=complete_nodes, help="Print the variables of one host.")
@site_option
def inventory(*, everything: bool, host: str | None, folder: Path) -> None:
    """Print the fleet as a dynamic Ansible inventory: `ansible-inventory -i inventory/clusterctl --list`.

    Groups are stages (gold, burned_in, …), racks (rack_A01) and SKUs (sku_…). A host is a node with an address and a
    pinned host key, which is written to the site's state/known_hosts. Holds no secret.
    """
    from clusterctl.operations import inventory as operation
    from clusterctl.operations.documents import redacted
    from clusterctl_cli.context import open_context

    if everything == bool(host):
        raise UsageError("one of --list and --host is required", where="--list", remedy="pass --list, or --host NODE")
    context = open_context(folder)
    document = operation.host_variables(context, host) if host else operation.list_hosts(context)
    echo(redacted(json.dumps(document, indent=2, ensure_ascii=False)))
