"""`clusterctl cable observe`: what has changed in the fabric since it was last looked at, kept in the journal."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from clusterctl_cli.formats import DOCUMENTS, format_option
from clusterctl_cli.options import FILE, site_option
from clusterctl_cli.text import echo

if TYPE_CHECKING:
    from clusterctl.operations.fabric_observation import FabricChange, ObserveResult

_RECORDED = "A recorded reading (ibnetdiscover, iblinkinfo, db_csv), gzipped or not.  [default: the live fabric]"
_MOST_LINES = 50


@click.command("observe")
@click.option("--fabric", type=FILE, help=_RECORDED)
@click.option("--deadline", type=click.FloatRange(min=1), default=300.0, show_default=True, help="Seconds to wait.")
@site_option
@format_option(*DOCUMENTS)
def observe(fabric: Path | None, deadline: float, folder: Path, as_json: bool) -> None:
    """Read the fabric and write into the journal which devices, links and transceivers came, changed or went, and what
    is wrong that is no node's fault.

    What is as it was is not written again, so that each has a history that can be read. The step cable of a run writes
    the same.
    """
    from clusterctl.operations import fabric_observation as operation
    from clusterctl.operations.operation import Control
    from clusterctl_cli.context import open_context

    request = operation.ObserveRequest(recorded=fabric, deadline_s=deadline)
    result = operation.run(open_context(folder), request, Control())
    if as_json:
        _print_document(result)
    else:
        _print_for_people(result)


def _print_document(result: ObserveResult) -> None:
    from clusterctl_cli.formats import print_document

    changes = [{"event": change.kind.value, "subject": change.subject, **change.data} for change in result.changes]
    print_document({"devices": result.devices, "links": result.links, "changes": changes})


def _print_for_people(result: ObserveResult) -> None:
    for change in result.changes[:_MOST_LINES]:
        echo(_text(change))
    if len(result.changes) > _MOST_LINES:
        echo(f"… and {len(result.changes) - _MOST_LINES} more; --json lists all")
    counts = f"{result.devices} devices, {result.links} links"
    echo(f"{counts}; changed since the last observation: {len(result.changes)}")


def _text(change: FabricChange) -> str:
    from clusterctl.fleet.event import Kind

    what = change.kind.value.removeprefix("fabric.").removesuffix("_seen")
    if change.kind is Kind.FABRIC_FAULT_SEEN and change.data["seen"]:
        fault = change.data["fault"]
        return f"wrong: {fault['cause']} → {fault['action']}"
    if change.kind is Kind.FABRIC_FAULT_SEEN:
        return f"not found any more: {change.known_cause or change.subject}"
    if not change.data["seen"]:
        return f"{what} {change.subject}: not seen any more"
    details = ", ".join(f"{key} {value}" for key, value in change.data.items() if key != "seen" and value)
    return f"{what} {change.subject}: {details}"
