"""`clusterctl tickets sync`."""

from __future__ import annotations

from pathlib import Path

import click

from clusterctl_cli.command_groups import TICKETS, LazyGroup
from clusterctl_cli.formats import DOCUMENTS, format_option
from clusterctl_cli.options import site_option
from clusterctl_cli.text import echo


@click.group(cls=LazyGroup, table=TICKETS)
def tickets() -> None:
    """Create and update tickets of incidents in the site's ticket system (docs/how-to/tickets.md)."""


@click.command()
@site_option
@format_option(*DOCUMENTS)
def sync(*, folder: Path, as_json: bool) -> int:
    """Create a ticket for each new incident, add notes about what changed, read which tickets are closed: for timers.

    A closed ticket offers the command that releases its nodes; nothing is released by itself. Exit code 1: the ticket
    system did not do what was asked, which is tried again later.
    """
    from clusterctl.fleet.state import NodeState
    from clusterctl.operations import tickets as operation
    from clusterctl.operations.operation import current_time
    from clusterctl.operations.reports import node_case
    from clusterctl_cli.approval import logged
    from clusterctl_cli.context import open_context
    from clusterctl_cli.fleet_report.plain_text import case_markdown
    from clusterctl_cli.formats import print_document
    from clusterctl_cli.render_incidents import tickets_json, tickets_text
    from clusterctl_cli.text import markdown

    context = open_context(folder)
    settings = context.site.settings

    def sheet(node: NodeState) -> str:
        case = node_case(context, node)
        return markdown(case_markdown(case, settings.name, current_time(), simulated=settings.simulated))

    with logged(context) as log:
        result = operation.run(context, sheet)
    if as_json:
        print_document(tickets_json(result))
    else:
        echo(tickets_text(result))
    log.print_path(result.exit_code)
    return result.exit_code
