"""`clusterctl pxe serve|check`."""

from __future__ import annotations

from pathlib import Path

import click

from clusterctl_cli.formats import format_option
from clusterctl_cli.options import site_option


@click.group()
def pxe() -> None:
    """Serve DHCP, TFTP and HTTP for machines that are installed (site.yml: provisioning, backend: pxe)."""


@pxe.command()
@site_option
def serve(folder: Path) -> int:
    """Serve until stopped (Ctrl-C, SIGTERM), for runs that come and go; for systemd.

    Installs nothing by itself: `clusterctl install` arms machines, and finds that they are served here.
    """
    from clusterctl.operations import pxe as operation
    from clusterctl.operations.operation import Control
    from clusterctl_cli.approval import print_event
    from clusterctl_cli.stopping import stoppable

    with stoppable() as cancelled:
        operation.serve(folder, Control(None, print_event, cancelled))
    return 0


@pxe.command()
@site_option
@format_option()
def check(folder: Path, as_json: bool) -> int:
    """Report what is missing before machines can be installed: tools, interface, address, images. Changes nothing.

    Exit code 3 where the controller lacks something, 2 where the site file or the boot folder does, 1 where something
    was not measured.
    """
    from clusterctl.operations import pxe as operation
    from clusterctl_cli.render_diagnoses import show

    checked = operation.check(folder)
    show(checked.found, as_json=as_json)
    return checked.exit_code
