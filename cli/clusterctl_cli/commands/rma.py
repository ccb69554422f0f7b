"""`clusterctl rma open|ship|receive|close|list`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from clusterctl_cli.command_groups import RMA, LazyGroup
from clusterctl_cli.completion import complete_nodes
from clusterctl_cli.formats import format_option
from clusterctl_cli.options import decision_options, reason_option, site_option
from clusterctl_cli.text import columns, echo, terminal_width

_part = click.argument("part", metavar="PART")
_due = click.option("--due", default="", metavar="WHEN", help="When the replacement is due: 2026-12-01, 14d.")


@click.group(cls=LazyGroup, table=RMA)
def rma() -> None:
    """Record returns of parts to their vendors (docs/how-to/rma.md). PART is a serial."""


@click.command("open")
@_part
@click.option("--case", required=True, metavar="NUMBER", help="The vendor's case number.")
@click.option("--node", default="", shell_complete=complete_nodes, help="PART is a slot or name in this node: gpu3.")
@_due
@reason_option("What is wrong with it")
@decision_options
def open_(folder: Path, **options: Any) -> int:
    """Open the return of a part, once the vendor has given a case number."""
    return _record("open", folder, options)


@click.command()
@_part
@click.option("--tracking", default="", metavar="NUMBER", help="The carrier's number.")
@_due
@decision_options
def ship(folder: Path, **options: Any) -> int:
    """Record that the part was sent to the vendor."""
    return _record("ship", folder, options)


@click.command()
@_part
@click.option("--serial", required=True, help="The serial of the replacement; the part's own after a repair.")
@decision_options
def receive(folder: Path, **options: Any) -> int:
    """Record that the replacement has arrived: its serial joins the history of the part, and the other way round.

    Once more with another --serial: the one before was recorded by mistake.
    """
    return _record("receive", folder, options)


@click.command()
@_part
@reason_option("How it ended")
@decision_options
def close(folder: Path, **options: Any) -> int:
    """Close the return of a part."""
    return _record("close", folder, options)


@click.command("list")
@click.option("--all", "closed", is_flag=True, help="Those that are closed as well.")
@site_option
@format_option()
def list_(*, closed: bool, folder: Path, as_json: bool) -> None:
    """List the open returns, the oldest first, with their age and what is late."""
    from clusterctl.operations.json_documents import rma_json
    from clusterctl.operations.operation import current_time
    from clusterctl.operations.rma import known_rmas
    from clusterctl_cli.context import open_context
    from clusterctl_cli.formats import print_document
    from clusterctl_cli.render_rma import HEAD, rma_row

    found = [one for one in known_rmas(open_context(folder)) if closed or one.open]
    now = current_time()
    if as_json:
        print_document({"rmas": [rma_json(one, now) for one in found]})
    elif found:
        echo(columns(HEAD, [rma_row(one, now) for one in found], width=terminal_width()))
    else:
        echo("no RMA" if closed else "no open RMA")


def _record(action: str, folder: Path, options: dict[str, Any]) -> int:
    from clusterctl.operations import rma as operation
    from clusterctl_cli.approval import Flags, carry_out, fix_moments
    from clusterctl_cli.context import open_context

    flags, context = Flags.taken(options), open_context(folder)
    fix_moments(options)
    request = operation.RmaRequest(action=operation.RmaAction(action), **options)
    return carry_out(operation, context, request, flags)
