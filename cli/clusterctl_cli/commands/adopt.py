"""`clusterctl adopt NODE…`: take in machines that are installed already."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from clusterctl_cli.commands.steps import run_operation
from clusterctl_cli.options import decision_options, nodes_argument

if TYPE_CHECKING:
    from clusterctl.operations.adopt import AdoptRequest
    from clusterctl.operations.context import SiteContext


@click.command("adopt")
@nodes_argument
@click.option(
    "--new-host-key", is_flag=True, help="Their hosts were installed again by hand: the SSH host key has changed."
)
@decision_options
def adopt(folder: Path, *, new_host_key: bool, **options: Any) -> int:
    """Take in machines that are installed already, up to the stage installed. Writes to no disk.

    Reads the SSH host key, the serial by host and the serial by BMC of each node and prints them. Confirming accepts
    these host keys, unless a certificate of the site's authority (ssh.host_ca) vouches for them. Of a node without a
    BMC it accepts the serial, too, which its host alone shows. A node whose host does
    not answer, has another key than before, or runs on another machine is refused; the others are adopted.
    """
    from clusterctl.operations import adopt as operation
    from clusterctl_cli.context import select_nodes

    def request(context: SiteContext) -> AdoptRequest:
        return operation.AdoptRequest(nodes=select_nodes(context, options), new_host_key=new_host_key)

    return run_operation(operation, folder, request, options)
