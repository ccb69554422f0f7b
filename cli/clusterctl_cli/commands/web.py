"""`clusterctl web`."""

from __future__ import annotations

from pathlib import Path

import click

from clusterctl_cli.options import site_option
from clusterctl_cli.text import echo


@click.command()
@click.option(
    "--listen", default="127.0.0.1:8080", show_default=True, metavar="ADDRESS:PORT", help="A loopback address."
)
@site_option
def web(*, listen: str, folder: Path) -> None:
    """Serve the fleet as a live page on this machine until stopped (Ctrl-C). Reads only.

    It prints the address, which holds a token. From another machine, forward the port: ssh -L 8080:127.0.0.1:8080.
    """
    from clusterctl_cli.context import open_context
    from clusterctl_cli.stopping import stoppable
    from clusterctl_web.service import serve

    context = open_context(folder)
    with stoppable() as stopped:
        serve(context, listen, lambda address: echo(f"the fleet of {context.site.settings.name}: {address}"), stopped)
