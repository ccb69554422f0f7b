"""`clusterctl notify send|test`."""

from __future__ import annotations

from pathlib import Path

import click

from clusterctl_cli.command_groups import NOTIFY, LazyGroup
from clusterctl_cli.formats import DOCUMENTS, format_option
from clusterctl_cli.options import site_option
from clusterctl_cli.text import echo


@click.group(cls=LazyGroup, table=NOTIFY)
def notify() -> None:
    """Send messages about incidents to the site's channels (docs/how-to/notifications.md)."""


@click.command()
@site_option
@format_option(*DOCUMENTS)
def send(*, folder: Path, as_json: bool) -> int:
    """Bring the incidents up to date and send the messages that are due: for timers.

    Runs and nights do the same at their end. Exit code 0: nothing is due any more; 1: a channel did not take a message,
    which is tried again later.
    """
    from clusterctl.operations import notify as operation
    from clusterctl_cli.approval import logged
    from clusterctl_cli.context import open_context
    from clusterctl_cli.formats import print_document
    from clusterctl_cli.render_incidents import send_json, send_text

    context = open_context(folder)
    with logged(context) as log:
        result = operation.run(context)
    if as_json:
        print_document(send_json(result))
    else:
        echo(send_text(result))
    log.print_path(result.exit_code)
    return result.exit_code


@click.command()
@click.argument("channel", required=False, default="")
@site_option
@format_option(*DOCUMENTS)
def test(*, channel: str, folder: Path, as_json: bool) -> int:
    """Send a test message to CHANNEL, or to all channels. Exit code 1: one was not taken."""
    from clusterctl.operations import notify as operation
    from clusterctl.operations.serial import to_data
    from clusterctl_cli.context import open_context
    from clusterctl_cli.formats import print_document

    found = operation.send_test(open_context(folder), channel)
    if as_json:
        print_document({"messages": [to_data(one) for one in found]})
    else:
        for one in found:
            echo(f"{one.channel}: {f'failed: {one.failure}' if one.failure else 'sent'}")
    return 1 if any(one.failure for one in found) else 0
