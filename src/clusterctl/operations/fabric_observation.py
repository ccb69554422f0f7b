"""Observation of the fabric: its changes since the last observation go into the journal; error counters as text."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import closing, nullcontext
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

from clusterctl.cabling.explain.findings import faults_of_fabric
from clusterctl.cabling.explain.verify import verify
from clusterctl.cabling.names import Hosts
from clusterctl.edges.clock import CLOCK
from clusterctl.edges.site.contents import wiring_plan
from clusterctl.fleet.codec import payload_to_data
from clusterctl.fleet.event import Kind
from clusterctl.fleet.fabric.history import FabricReading
from clusterctl.fleet.finding import Evidence
from clusterctl.formats.infiniband.fabric_file import decode_fabric, decode_telemetry, has_fabric, storable
from clusterctl.operations.adapters import Access
from clusterctl.operations.context import SiteContext
from clusterctl.operations.documents import as_usage, content
from clusterctl.operations.fabric_files import limits_for
from clusterctl.operations.known_hosts import KnownHosts
from clusterctl.operations.operation import Control
from clusterctl.operations.site_adapters import counter_reader
from clusterctl.ports import Deadline, Journal
from clusterctl.steps.cable.fabric_record import FabricRecord
from clusterctl.steps.cable.link_health import counters_read


@dataclass(frozen=True, slots=True, kw_only=True)
class ObserveRequest:
    """`recorded`: a recorded reading; None: the live fabric. `deadline_s`: seconds for the live one."""

    recorded: Path | None = None
    deadline_s: float = 300.0


@dataclass(frozen=True, slots=True, kw_only=True)
class FabricChange:
    """One new event of the fabric. `known_cause`: what the journal had as the cause of the same fault before."""

    kind: Kind
    subject: str
    data: Mapping[str, Any] = field(default_factory=dict)
    known_cause: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ObserveResult:
    """How large the fabric is, and what has changed since the last observation."""

    devices: int
    links: int
    changes: tuple[FabricChange, ...]


def run(context: SiteContext, request: ObserveRequest, control: Control) -> ObserveResult:
    """Read the fabric, judge it by the site's plan, and write the changes and faults into the journal."""
    data, name, evidence = _reading(context, request, control)
    with as_usage() if request.recorded is not None else nullcontext():
        seen = decode_fabric(data, file=name)
        telemetry = decode_telemetry(data, seen, file=name) if has_fabric(data, file=name) else None
    causes = {fault.subject: fault.cause for fault in context.faults()}
    verification = verify(wiring_plan(context.site), seen, fabric_hosts(context.journal))
    most = limits_for(context.site).value("broken_links_max")
    look = FabricReading(seen, telemetry, faults_of_fabric(verification, most))
    new = FabricRecord(context.journal).write(look, evidence)
    if telemetry is not None and telemetry.counters and telemetry.at is not None:
        context.journal.append([counters_read(evidence[:1], telemetry.at, len(telemetry.counters))])
    changes = tuple(
        FabricChange(
            kind=event.kind,
            subject=event.subject,
            data=payload_to_data(event.payload),
            known_cause=causes.get(event.subject, ""),
        )
        for event in new
    )
    return ObserveResult(devices=len(seen.devices), links=len(seen.links), changes=changes)


def fabric_hosts(journal: Journal) -> Hosts:
    """Return the owner of each adapter that a BMC has reported, by GUID."""
    return KnownHosts(journal).adapters()


@dataclass(frozen=True, slots=True, kw_only=True)
class CountersRequest:
    """`command`: the program that reads all error counters, with its arguments. Needs no site."""

    command: tuple[str, ...] = ("ibqueryerrors",)
    deadline_s: float = 300.0


@dataclass(frozen=True, slots=True, kw_only=True)
class CountersResult:
    """`text`: as the program printed it; `at`: when it began."""

    at: datetime
    text: str


def read_counters(request: CountersRequest, control: Control) -> CountersResult:
    """Read the error counters of the whole fabric; clears none."""
    at = CLOCK.now()
    found = counter_reader(request.command).ibqueryerrors(Deadline.after(request.deadline_s, control.cancelled))
    return CountersResult(at=at, text=found.value)


def _reading(
    context: SiteContext, request: ObserveRequest, control: Control
) -> tuple[bytes, str, tuple[Evidence, ...]]:
    """Return the reading's bytes, its name, and its evidence."""
    if request.recorded is not None:
        name, data = str(request.recorded), content(request.recorded)
        kept = storable(data, file=name)
        return data, name, (Evidence(name, "controller", CLOCK.now(), context.site.origin, kept),)
    with closing(context.adapters(Access.READ)) as adapters:
        found = adapters.fabric.ibnetdiscover(Deadline.after(request.deadline_s, control.cancelled))
    return found.value.encode(), " ".join(context.site.settings.fabric.ibnetdiscover), found.evidence
