"""`clusterctl logs NODE`: a node's log, joined with the journal's events of the node."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click

from clusterctl_cli.completion import complete_nodes
from clusterctl_cli.formats import DOCUMENTS, format_option, print_document
from clusterctl_cli.options import gathered, site_option
from clusterctl_cli.text import echo, terminal_width

if TYPE_CHECKING:
    from clusterctl.operations.node_logs import LogsRequest


@dataclass(frozen=True, kw_only=True)
class LogsOptions:
    """The arguments and options of `clusterctl logs`."""

    node: str
    since: str
    until: str
    grep: str
    lines: int
    source: str
    folder: Path
    as_json: bool


@click.command()
@click.argument("node", metavar="NODE", shell_complete=complete_nodes)
@click.option("--since", default="", metavar="WHEN", help="30min, 4h, 2d, 2026-12-01T18:00 (UTC); else one hour ago.")
@click.option("--until", default="", metavar="WHEN", help="Likewise; else now.")
@click.option("--grep", default="", metavar="TEXT", help="Only lines with this text, no pattern; case is ignored.")
@click.option(
    "--lines",
    type=click.IntRange(1, 10_000),
    default=1000,
    show_default=True,
    help="At most so many, the newest.",
)
@click.option(
    "--from",
    "source",
    type=click.Choice(("loki", "node")),
    help="Only the site's Loki, or only the node; else Loki where there is one, then the node.",
)
@site_option
@format_option(*DOCUMENTS)
@gathered(LogsOptions)
def logs(options: LogsOptions) -> int:
    """Print a node's log of a time, with what clusterctl recorded of the node then.

    The log comes from the site's Loki (monitoring.loki), or from the node's journald over SSH. Lines have the node's
    clock.

    Exit code 0: the log was read; 1: it could not be.
    """
    from clusterctl.operations import node_logs
    from clusterctl.operations.log_documents import logs_json
    from clusterctl.operations.operation import Control
    from clusterctl_cli.approval import observed
    from clusterctl_cli.context import open_context
    from clusterctl_cli.render_logs import logs_text

    request = _request(options)
    context = open_context(options.folder)
    with observed(context) as (log, cancelled):
        result = node_logs.run(context, request, Control(cancelled=cancelled))
    if options.as_json:
        print_document(logs_json(result))
    else:
        echo(logs_text(result, width=terminal_width()))
    for note in node_logs.notes(result):
        echo(note, err=True)
    log.print_path(result.exit_code)
    return result.exit_code


def _request(options: LogsOptions) -> LogsRequest:
    from clusterctl.fleet.durations import parse_past
    from clusterctl.operations.node_logs import LogsRequest, default_window
    from clusterctl.operations.operation import current_time
    from clusterctl.ports.logs import LogWindow

    now = current_time()
    since, until = default_window(
        parse_past(options.since, now, where="--since") if options.since else None,
        parse_past(options.until, now, where="--until") if options.until else now,
    )
    window = LogWindow(since=since, until=until, text=options.grep, at_most=options.lines)
    return LogsRequest(node=options.node, window=window, source=options.source or "")
