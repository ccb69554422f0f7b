"""Clearing event logs by a person's word: asked, kept, cleared under the nodes' claims, told."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Sequence
from contextlib import closing
from typing import Any

import click

from clusterctl.fleet.decisions.decision import said
from clusterctl.fleet.decisions.permissions import log_permitted
from clusterctl.fleet.errors import CancelledError, UsageError
from clusterctl.operations.adapters import Edges
from clusterctl.operations.context import Office
from clusterctl.operations.decisions import Manner, chosen, claimed
from clusterctl.ports import Deadline
from clusterctl.steps.event_log import ClearResult, EventLogClearer
from clusterctl.steps.executor.step import IntentLog
from clusterctl_cli import render
from clusterctl_cli.complaints import error_json
from clusterctl_cli.stopping import stoppable

CLEAR_S = 600.0
"""Seconds for one machine: a full log of a slow BMC has hundreds of entries, each read by itself."""


def clear(office: Office, patterns: Sequence[str], reason: str, manner: Manner) -> int:
    """Ask, keep, clear, tell; the exit code."""
    why = said(reason)
    names = chosen(office, patterns)
    nodes = office.named(names)
    listed = {node.name for node in office.site.nodes}
    for node in nodes:
        log_permitted(node)
        if node.name not in listed:
            remedy = "put it back into the sheet, so that its BMC can be asked"
            raise UsageError("the sheet no longer names it", where=node.name, remedy=remedy)
    if manner.dry_run:
        _tell([], manner, f"event logs that would be kept and cleared: {', '.join(names)}\n\nNothing was changed.")
        return 0
    if not manner.yes:
        question = f"Keep the event logs of {len(names)} machines ({', '.join(names)}) in the journal and clear them?"
        click.confirm(question, abort=True, err=True)
    cancelled = threading.Event()
    batch = office.site.settings.batch.discover
    deadline = Deadline.after(CLEAR_S * -(-len(names) // batch), cancelled)
    with closing(Edges(office.site)) as outside, claimed(office, nodes) as claims, stoppable(cancelled):
        fresh = [office.journal.state(node.id) for node in nodes]
        clearing = EventLogClearer(outside.bmcs, office.site.bmc_address, office.journal, batch)
        permits = [(node, log_permitted(node)) for node in fresh]
        done = list(_followed(clearing.clear(permits, why, IntentLog(office.journal, claims), deadline)))
    _tell(done, manner)
    if cancelled.is_set():
        return CancelledError.exit_code
    return 1 if any(item.error for item in done) else 0


def _followed(outcomes: Iterator[ClearResult]) -> Iterator[ClearResult]:
    """With a line on stderr for each, as it comes."""
    for item in outcomes:
        click.echo(f"{item.name}: {item.error or _words(item)}", err=True)
        yield item


def _words(item: ClearResult) -> str:
    return f"{item.entries} entries kept and cleared" if item.entries else "nothing to clear"


def _tell(done: Sequence[ClearResult], manner: Manner, words: str = "") -> None:
    """`{"dry_run":…, "logs": [{"name":…, "entries":…, "evidence": […], "error": null | {…}}]}`, or a line a node."""
    ordered = sorted(done, key=lambda item: item.name)
    if manner.as_json:
        click.echo(json.dumps({"dry_run": manner.dry_run, "logs": [_json(item) for item in ordered]}))
        return
    rows = [
        (item.name, str(item.entries), ", ".join(digest[:12] for digest in item.kept), _trouble(item))
        for item in ordered
    ]
    click.echo(words or render.columns(("NODE", "CLEARED", "KEPT AS", "TROUBLE"), rows))


def _trouble(item: ClearResult) -> str:
    return item.error.message if item.error else ""


def _json(item: ClearResult) -> dict[str, Any]:
    error = error_json(item.error) if item.error else None
    return {"name": item.name, "entries": item.entries, "evidence": list(item.kept), "error": error}
