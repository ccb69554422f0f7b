"""`clusterctl web`: bare, it serves the page; `user` and `token` are about its users."""

from __future__ import annotations

from pathlib import Path

import click

from clusterctl_cli.command_groups import WEB_TOKEN, WEB_USER, LazyGroup
from clusterctl_cli.options import site_option
from clusterctl_cli.text import echo


@click.group(invoke_without_command=True)
@click.option(
    "--listen",
    metavar="ADDRESS:PORT",
    help="Else web.listen of the site, or 127.0.0.1:8080. Other than on a loopback address a certificate is needed.",
)
@site_option
@click.pass_context
def web(ctx: click.Context, /, *, listen: str | None, folder: Path) -> None:
    """Serve the fleet as a live page until stopped (Ctrl-C).

    On a loopback address it prints an address with a token, which opens the page as an administrator until this
    command ends. From another machine, forward the port: ssh -L 8080:127.0.0.1:8080. Users: clusterctl web user add.
    """
    if ctx.invoked_subcommand is not None:
        return
    from clusterctl_cli.context import open_context
    from clusterctl_cli.stopping import stoppable
    from clusterctl_web.service import serve

    context = open_context(folder)
    where = listen or context.site.settings.web.listen
    with stoppable() as stopped:
        serve(context, where, lambda address: echo(f"the fleet of {context.site.settings.name}: {address}"), stopped)


@web.group(cls=LazyGroup, table=WEB_USER)
def user() -> None:
    """Add, list and remove the users of the web page."""


@web.group(cls=LazyGroup, table=WEB_TOKEN)
def token() -> None:
    """Make, list and remove tokens of the API."""
