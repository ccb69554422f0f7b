"""`clusterctl node NAME`."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

import click

from clusterctl.fleet.errors import UsageError
from clusterctl.fleet.event import Stream
from clusterctl_cli.options import json_option, site_option, verbose_option

if TYPE_CHECKING:
    from clusterctl.fleet.event import Event
    from clusterctl.fleet.hardware.parts import Part
    from clusterctl.operations.context import SiteContext


@click.command()
@click.argument("name")
@click.option("--evidence", "digest", metavar="DIGEST", help="Print one piece of evidence, raw (12 digits suffice).")
@click.option("--part", metavar="PART", help="Show the history of a part instead, by slot or serial, wherever it was.")
@site_option
@json_option
@verbose_option
def node(name: str, digest: str | None, part: str | None, folder: Path, as_json: bool) -> None:
    """Show one node's history, its last reports, and the evidence that they rest on."""
    from rich.console import Console

    from clusterctl.fleet.codec import inventory_to_data, report_to_data
    from clusterctl.fleet.hardware.parts import part_named
    from clusterctl.operations.operation import current_time
    from clusterctl_cli import render
    from clusterctl_cli.context import open_context
    from clusterctl_cli.history import event_json, history_text

    context = open_context(folder)
    state = context.node(name)
    events = list(context.journal.history(Stream.NODE, state.id))
    if digest is not None:
        sys.stdout.buffer.write(_evidence(context, events, digest))
        return
    if part is not None:
        _show_part(context, part_named(state, part), as_json)
        return
    if as_json:
        reports = {step: report_to_data(report) for step, report in state.reports.items()}
        history = [event_json(event) for event in events]
        inventory = inventory_to_data(state.inventory) if state.inventory else None
        more = {"inventory": inventory, "reports": reports, "history": history}
        click.echo(json.dumps(render.node_json(state, current_time()) | more))
        return
    console = Console(highlight=False)
    console.print(render.node_head(state, current_time()))
    click.echo(history_text(events))
    for step, report in state.reports.items():
        console.print(f"\n[bold]{step}[/bold] (suite {report.suite or '-'})")
        console.print(render.findings_table(report.findings, state.waivers, current_time()))


def _show_part(context: SiteContext, part: Part, as_json: bool) -> None:
    """What the journal knows of a part, whichever nodes it was in."""
    from clusterctl_cli.history import event_json, history_text

    if not part.serial:
        raise UsageError(
            f"nothing has told the serial of {part.subject}",
            where="--part",
            remedy="give a serial, or a slot as `clusterctl node NAME --json` has it in its inventory",
        )
    events = list(context.journal.history(Stream.PART, part.serial))
    if as_json:
        found = {"subject": part.subject, "serial": part.serial, "history": [event_json(event) for event in events]}
        click.echo(json.dumps(found))
        return
    click.echo(str(part))
    click.echo(history_text(events))


def _evidence(context: SiteContext, events: Iterable[Event], prefix: str) -> bytes:
    """The raw content of the evidence whose digest begins with `prefix`."""
    digests = {digest for event in events for digest in event.evidence if digest.startswith(prefix)}
    if len(digests) != 1:
        raise UsageError(
            f"{len(digests)} pieces of evidence of this node begin with {prefix!r}",
            where="--evidence",
            remedy="clusterctl why NAME shows the digests",
        )
    item = context.journal.evidence(digests.pop())
    if item is None:
        raise UsageError("this evidence is no longer kept", where="--evidence", remedy="read its report instead")
    return item.content
