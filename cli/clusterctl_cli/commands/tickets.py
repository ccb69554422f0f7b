"""`clusterctl tickets sync`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from clusterctl_cli.command_groups import TICKETS, LazyGroup
from clusterctl_cli.formats import DOCUMENTS, format_option
from clusterctl_cli.options import site_option
from clusterctl_cli.text import echo

if TYPE_CHECKING:
    from clusterctl.fleet.state import NodeState
    from clusterctl.operations.context import SiteContext
    from clusterctl.operations.tickets import Sheet


@click.group(cls=LazyGroup, table=TICKETS)
def tickets() -> None:
    """Create and update tickets of incidents in the site's ticket system (docs/how-to/tickets.md)."""


def sheet_of(context: SiteContext) -> Sheet:
    """Return the function that renders the vendor's sheet of a node, which tickets get as an attachment."""
    from clusterctl.operations.operation import current_time
    from clusterctl.operations.reports import node_case
    from clusterctl_cli.fleet_report.plain_text import case_markdown
    from clusterctl_cli.text import markdown

    settings = context.site.settings

    def sheet(node: NodeState) -> str:
        case = node_case(context, node)
        return markdown(case_markdown(case, settings.name, current_time(), simulated=settings.simulated))

    return sheet


@click.command()
@site_option
@format_option(*DOCUMENTS)
def sync(*, folder: Path, as_json: bool) -> int:
    """Create a ticket for each new incident, add notes about what changed, read which tickets are closed: for timers.

    A closed ticket offers the command that releases its nodes; nothing is released by itself. Exit code 1: the ticket
    system did not do what was asked, which is tried again later.
    """
    from clusterctl.operations import tickets as operation
    from clusterctl_cli.approval import logged
    from clusterctl_cli.context import open_context
    from clusterctl_cli.formats import print_document
    from clusterctl_cli.render_incidents import tickets_json, tickets_text

    context = open_context(folder)
    with logged(context) as log:
        result = operation.run(context, sheet_of(context))
    if as_json:
        print_document(tickets_json(result))
    else:
        echo(tickets_text(result))
    log.print_path(result.exit_code)
    return result.exit_code
