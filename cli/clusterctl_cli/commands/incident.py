"""`clusterctl incident list|show|resolve`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from clusterctl_cli.command_groups import INCIDENT, LazyGroup
from clusterctl_cli.completion import complete_incidents
from clusterctl_cli.formats import DOCUMENTS, format_option
from clusterctl_cli.options import decision_options, site_option
from clusterctl_cli.text import columns, echo, terminal_width


@click.group(cls=LazyGroup, table=INCIDENT)
def incident() -> None:
    """List, show and resolve incidents: what is wrong, since when, where, and the messages about it."""


@click.command("list")
@click.option("--all", "resolved", is_flag=True, help="Those that are resolved as well.")
@site_option
@format_option()
def list_(*, resolved: bool, folder: Path, as_json: bool) -> None:
    """List the open incidents, the one that changed last first. `clusterctl notify send` brings them up to date."""
    from clusterctl.operations import incidents
    from clusterctl.operations.json_documents import incident_json
    from clusterctl.operations.operation import current_time
    from clusterctl_cli.context import open_context
    from clusterctl_cli.formats import print_document
    from clusterctl_cli.render_incidents import HEAD, row

    found = incidents.listed(open_context(folder), resolved=resolved)
    if as_json:
        print_document({"incidents": [incident_json(one) for one in found]})
    elif found:
        now = current_time()
        echo(columns(HEAD, [row(one, now) for one in found], width=terminal_width()))
    else:
        echo("no incident" if resolved else "no open incident")


@click.command()
@click.argument("name", metavar="INCIDENT", shell_complete=complete_incidents)
@site_option
@format_option(*DOCUMENTS)
def show(*, name: str, folder: Path, as_json: bool) -> None:
    """Show an incident: its nodes or links, its history, and the messages about it.

    The first digits of its id are enough.
    """
    from clusterctl.operations import incidents
    from clusterctl.operations.json_documents import event_json, incident_json
    from clusterctl.operations.tickets import release_offer
    from clusterctl_cli.context import open_context
    from clusterctl_cli.formats import print_document
    from clusterctl_cli.render_history import history_text
    from clusterctl_cli.render_incidents import incident_text, ticket_lines

    context = open_context(folder)
    found = incidents.named(context, name)
    events = incidents.history(context, found.state.id)
    if as_json:
        print_document({**incident_json(found), "history": [event_json(event) for event in events]})
        return
    echo(incident_text(found))
    for line in ticket_lines(found, release_offer(context, found.state)):
        echo(line)
    echo(history_text(events))


@click.command()
@click.argument("names", metavar="INCIDENT...", nargs=-1, required=True, shell_complete=complete_incidents)
@click.option("--reason", required=True, help="Why; in the message to the channels, with your name.")
@decision_options
def resolve(names: tuple[str, ...], reason: str, folder: Path, **options: Any) -> int:
    """End incidents by hand. Their channels and their tickets get to know it; nodes and links stay as they are.

    No new incident is opened about it until it is gone and comes back, or is seen on another node or link.
    """
    from clusterctl.operations import incident_resolution as operation
    from clusterctl_cli.approval import Flags, carry_out
    from clusterctl_cli.context import open_context

    flags, context = Flags.taken(options), open_context(folder)
    request = operation.ResolveRequest(incidents=names, reason=reason)
    return carry_out(operation, context, request, flags)
