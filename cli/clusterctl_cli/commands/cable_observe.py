"""`clusterctl cable observe`: what has changed in the fabric since it was last looked at, kept in the journal."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from clusterctl.operations.documents import as_usage, content
from clusterctl_cli.formats import DOCUMENTS, format_option
from clusterctl_cli.options import FILE, site_option, verbose_option

if TYPE_CHECKING:
    from clusterctl.fleet.event import NewEvent
    from clusterctl.fleet.fabric.topology import Fabric
    from clusterctl.fleet.finding import Evidence
    from clusterctl.fleet.payloads.hardware import FabricFault
    from clusterctl.operations.context import SiteContext

_RECORDED = "A recorded reading (ibnetdiscover, iblinkinfo, db_csv), gzipped or not.  [default: the live fabric]"
_MOST_LINES = 50


@click.command("observe", short_help="Write the changes of the fabric into the journal.")
@click.option("--fabric", type=FILE, help=_RECORDED)
@click.option("--deadline", type=click.FloatRange(min=1), default=300.0, show_default=True, help="Seconds to wait.")
@site_option
@format_option(*DOCUMENTS)
@verbose_option
def observe(fabric: Path | None, deadline: float, folder: Path, as_json: bool) -> None:
    """Read the fabric and write into the journal which devices, links and transceivers came, changed or went, and what
    is wrong that is no node's fault.

    What is as it was is not written again, so that each has a history that can be read. The step cable of a run writes
    the same.
    """
    from contextlib import nullcontext

    from clusterctl.fleet.fabric.history import FabricReading
    from clusterctl.formats.infiniband.fabric_file import decode_fabric, decode_telemetry, has_fabric
    from clusterctl.steps.cable.fabric_record import FabricRecord
    from clusterctl_cli.context import open_context

    context = open_context(folder)
    data, name, evidence = _reading(context, fabric, deadline)
    with as_usage() if fabric is not None else nullcontext():
        seen = decode_fabric(data, file=name)
        telemetry = decode_telemetry(data, seen, file=name) if has_fabric(data, file=name) else None
    stood = {fault.subject: fault.cause for fault in context.faults()}
    look = FabricReading(seen, telemetry, _faults(context, seen))
    new = FabricRecord(context.journal).write(look, evidence)
    if as_json:
        _print_document(seen, new)
    else:
        _print_for_people(seen, new, stood)


def _faults(context: SiteContext, seen: Fabric) -> tuple[FabricFault, ...]:
    """By the site's plan."""
    from clusterctl.cabling.explain.findings import faults_of_fabric
    from clusterctl.cabling.explain.verify import verify
    from clusterctl.edges.site.contents import wiring_plan
    from clusterctl.operations.cabling_hosts import fabric_hosts
    from clusterctl.operations.fabric_readings import most_broken_percent

    verification = verify(wiring_plan(context.site), seen, fabric_hosts(context.journal))
    return faults_of_fabric(verification, most_broken_percent())


def _reading(context: SiteContext, file: Path | None, deadline: float) -> tuple[bytes, str, tuple[Evidence, ...]]:
    """The bytes, what to call them, and the evidence that they are."""
    from clusterctl.edges.clock import CLOCK
    from clusterctl.edges.infiniband import IbnetdiscoverReader
    from clusterctl.fleet.finding import Evidence
    from clusterctl.formats.infiniband.fabric_file import storable
    from clusterctl.ports import Deadline

    settings = context.site.settings
    origin = context.site.origin
    if file is not None:
        data = content(file)
        kept = storable(data, file=str(file))
        return data, str(file), (Evidence(str(file), "controller", CLOCK.now(), origin, kept),)
    reader = IbnetdiscoverReader(CLOCK, origin, command=settings.fabric.ibnetdiscover, sminfo=settings.fabric.sminfo)
    found = reader.ibnetdiscover(Deadline.after(deadline))
    return found.value.encode(), " ".join(settings.fabric.ibnetdiscover), found.evidence


def _print_document(seen: Fabric, new: Sequence[NewEvent]) -> None:
    from clusterctl.fleet.codec import payload_to_data
    from clusterctl_cli.formats import print_document

    document: dict[str, object] = {
        "devices": len(seen.devices),
        "links": len(seen.links),
        "changes": [
            {"event": event.kind.value, "subject": event.subject, **payload_to_data(event.payload)} for event in new
        ],
    }
    print_document(document)


def _print_for_people(seen: Fabric, new: Sequence[NewEvent], stood: Mapping[str, str]) -> None:
    """`stood`: the causes of the faults that were known before, by subject."""
    for event in new[:_MOST_LINES]:
        click.echo(_words(event, stood))
    if len(new) > _MOST_LINES:
        click.echo(f"… and {len(new) - _MOST_LINES} more; --json lists all")
    click.echo(f"{len(seen.devices)} devices, {len(seen.links)} links; changed since the last look: {len(new)}")


def _words(event: NewEvent, stood: Mapping[str, str]) -> str:
    from clusterctl.fleet.codec import payload_to_data
    from clusterctl.fleet.payloads.hardware import FabricFaultSeen, FabricSeen

    what = event.kind.value.removeprefix("fabric.").removesuffix("_seen")
    match event.payload:
        case FabricFaultSeen(fault=None):
            return f"not found any more: {stood.get(event.subject, event.subject)}"
        case FabricFaultSeen(fault=fault) if fault is not None:
            return f"wrong: {fault.cause} → {fault.action}"
        case FabricSeen(seen=False):
            return f"{what} {event.subject}: not seen any more"
    details = ", ".join(
        f"{key} {value}" for key, value in payload_to_data(event.payload).items() if key != "seen" and value
    )
    return f"{what} {event.subject}: {details}"
