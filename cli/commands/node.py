"""`clusterctl node NAME`."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

import click

from clusterctl.cli.options import json_option, site_option, verbose_option
from clusterctl.fleet.errors import UsageError

if TYPE_CHECKING:
    from clusterctl.cli.office import Office
    from clusterctl.fleet.event import Event


@click.command()
@click.argument("name")
@click.option("--evidence", "digest", metavar="DIGEST", help="Print one piece of evidence, raw (12 digits suffice).")
@site_option
@json_option
@verbose_option
def node(name: str, digest: str | None, folder: Path, as_json: bool) -> None:
    """Show one node's history, its last reports, and the evidence that they rest on."""
    from rich.console import Console

    from clusterctl.cli import render
    from clusterctl.cli.history import event_json, history_text
    from clusterctl.cli.office import open_office
    from clusterctl.fleet.codec import report_to_data

    office = open_office(folder)
    state = office.node(name)
    events = list(office.journal.history("node", state.id))
    if digest is not None:
        sys.stdout.buffer.write(_evidence(office, events, digest))
        return
    if as_json:
        reports = {step: report_to_data(report) for step, report in state.reports.items()}
        history = [event_json(event) for event in events]
        click.echo(json.dumps(render.node_json(state) | {"reports": reports, "history": history}))
        return
    console = Console(highlight=False)
    console.print(render.node_head(state))
    click.echo(history_text(events))
    for step, report in state.reports.items():
        console.print(f"\n[bold]{step}[/bold] (suite {report.suite or '-'})")
        console.print(render.findings_table(report.findings))


def _evidence(office: Office, events: Iterable[Event], prefix: str) -> bytes:
    """The raw content of the evidence whose digest begins with `prefix`."""
    digests = {digest for event in events for digest in event.evidence if digest.startswith(prefix)}
    if len(digests) != 1:
        raise UsageError(
            f"{len(digests)} pieces of evidence of this node begin with {prefix!r}",
            where="--evidence",
            remedy="clusterctl why NAME shows the digests",
        )
    item = office.journal.evidence(digests.pop())
    if item is None:
        raise UsageError("this evidence is no longer kept", where="--evidence", remedy="read its report instead")
    return item.content
