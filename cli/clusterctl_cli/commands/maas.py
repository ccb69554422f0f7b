"""`clusterctl maas check`."""

from __future__ import annotations

from pathlib import Path

import click

from clusterctl_cli.formats import format_option
from clusterctl_cli.options import site_option


@click.group()
def maas() -> None:
    """Set up and check the MAAS host that installs the site's machines (docs/how-to/maas-host.md)."""


@maas.command()
@click.option("--subnet", metavar="CIDR", default="", help="The provisioning network, where MAAS has others.")
@click.option("--from", "node", metavar="NODE", default="", help="Try name, package, time and metadata on this node.")
@click.option("--deadline", type=click.FloatRange(min=1), default=180.0, show_default=True, help="Seconds to wait.")
@site_option
@format_option()
def check(*, subnet: str, node: str, deadline: float, folder: Path, as_json: bool) -> int:
    """Print what the MAAS host lacks to install this site, and how to repair it. Changes nothing.

    With --from, an installed node tries over SSH what MAAS gives its machines. Exit code 0: ready; 1: something is
    broken, or the node could not try it; 3: MAAS cannot be reached, or rejects our key.
    """
    from clusterctl.operations import maas_view, preparation
    from clusterctl.operations.operation import Control
    from clusterctl_cli.context import open_context
    from clusterctl_cli.render_diagnoses import show
    from clusterctl_cli.stopping import stoppable

    request = preparation.MaasCheckRequest(subnet=subnet, deadline_s=deadline)
    with stoppable() as cancelled:
        control = Control(cancelled=cancelled)
        if node:
            result = maas_view.check(open_context(folder), node, request, control)
        else:
            result = preparation.check_maas(folder, request, control)
    show(result.found, as_json=as_json)
    return result.exit_code
