"""The fabric of a site as the journal knows it: its last reading, judged by the plan, and its counters of a time."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta

from clusterctl.cabling.explain.verify import verify
from clusterctl.cabling.health.days import window_over
from clusterctl.cabling.health.findings import fabric_labels
from clusterctl.cabling.health.judge import judge_health
from clusterctl.edges.site.contents import wiring_plan
from clusterctl.fleet.errors import ParseError, UsageError
from clusterctl.fleet.event import Event, Kind, Stream
from clusterctl.fleet.fabric.history import known_modules
from clusterctl.fleet.fabric.topology import Fabric
from clusterctl.fleet.finding import Digest
from clusterctl.fleet.payloads.hardware import FabricCountersRead
from clusterctl.fleet.payloads.runs import BurnEnded, BurnStageMeasured, BurnStarted
from clusterctl.formats.infiniband.fabric_file import decode_fabric
from clusterctl.operations.context import SiteContext
from clusterctl.operations.fabric_files import limits_for
from clusterctl.operations.fabric_observation import fabric_hosts
from clusterctl.operations.fabric_report import CounterHistory, FabricReport
from clusterctl.operations.operation import current_time
from clusterctl.steps.cable.link_health import period_readings

PERIOD = timedelta(hours=24)
BURNS = timedelta(days=90)
READING_KINDS = frozenset({Kind.FABRIC_DEVICE_SEEN, Kind.FABRIC_LINK_SEEN, Kind.FABRIC_COUNTERS_READ})


@dataclass(frozen=True, slots=True, kw_only=True)
class Burn:
    """The last burn of the fabric. `ended`: None while it runs or where it was killed; `reason`: why it ended early."""

    began: datetime
    hosts: int
    stages: int
    flows: int
    failed: int
    ended: datetime | None = None
    reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class SiteFabric:
    """The fabric as of its last reading at `read_at`; `burn`: None where none is known of."""

    report: FabricReport
    read_at: datetime
    burn: Burn | None = None


def last_seq(context: SiteContext) -> int:
    """Return the number of the last event of the fabric; 0 before the first."""
    return max((event.seq for event in context.journal.latest(Stream.FABRIC)), default=0)


def site_fabric(context: SiteContext) -> SiteFabric | None:
    """Return the fabric; None where it was never read. Raises `UsageError` for a plan that is not understood."""
    found = _last_reading(context)
    if found is None:
        return None
    fabric, read_at = found
    plan = wiring_plan(context.site)
    verification = verify(plan, fabric, fabric_hosts(context.journal))
    report = FabricReport(
        fabric=fabric, plan=plan, verification=verification, counters=_counters(context, fabric, read_at)
    )
    return SiteFabric(report=report, read_at=read_at, burn=last_burn(context))


def _last_reading(context: SiteContext) -> tuple[Fabric, datetime] | None:
    """Return the newest reading whose raw output the journal still has."""
    events = [event for event in context.journal.latest(Stream.FABRIC) if event.kind in READING_KINDS]
    tried: set[Digest] = set()
    for event in sorted(events, key=lambda one: one.seq, reverse=True):
        for digest in _digests(event):
            if digest in tried:
                continue
            tried.add(digest)
            item = context.journal.evidence(digest)
            fabric = _decoded(item.content) if item is not None else None
            if fabric is not None and item is not None:
                return fabric, item.at
    return None


def _digests(event: Event) -> Iterator[Digest]:
    if isinstance(event.payload, FabricCountersRead):
        yield event.payload.fabric
    yield from event.evidence


def _decoded(content: bytes) -> Fabric | None:
    try:
        fabric = decode_fabric(content, file="the last reading")
    except (ParseError, UsageError):
        return None
    return fabric if fabric.devices else None


def _counters(context: SiteContext, fabric: Fabric, read_at: datetime) -> CounterHistory | None:
    """Return the readings of the day before the last one; None for fewer than two."""
    readings = tuple(telemetry for _, telemetry in period_readings(context.journal, read_at - PERIOD))
    modules = known_modules(context.journal.latest(Stream.FABRIC, Kind.FABRIC_TRANSCEIVER_SEEN))
    window = window_over(readings, limits_for(context.site), modules)
    if window is None:
        return None
    first = readings[0].at or read_at
    labels = fabric_labels(fabric, wiring_plan(context.site))
    return CounterHistory(
        readings=readings,
        moments=tuple(((one.at or first) - first).total_seconds() for one in readings),
        labels=labels,
        health=judge_health(fabric, window, labels),
    )


def last_burn(context: SiteContext) -> Burn | None:
    """Return the last burn that began in the last `BURNS`; those of single links do not count."""
    kinds = (Kind.BURN_STARTED, Kind.BURN_STAGE_MEASURED, Kind.BURN_ENDED)
    events = sorted(context.journal.recent(kinds, current_time() - BURNS), key=lambda event: event.seq)
    single = {event.subject for event in events if isinstance(event.payload, BurnStarted) and event.payload.links}
    events = [event for event in events if event.subject not in single]
    began = next((event for event in reversed(events) if isinstance(event.payload, BurnStarted)), None)
    return _burn(began, [one for one in events if one.seq > began.seq]) if began is not None else None


def _burn(began: Event, then: Iterable[Event]) -> Burn:
    hosts = len(began.payload.hosts) if isinstance(began.payload, BurnStarted) else 0
    stages = flows = failed = 0
    ended, reason = None, ""
    for event in then:
        match event.payload:
            case BurnStageMeasured() as stage:
                stages, flows, failed = stages + 1, flows + stage.flows, failed + len(stage.failed)
            case BurnEnded() as end:
                ended, reason = event.at, end.reason
    return Burn(began=began.at, hosts=hosts, stages=stages, flows=flows, failed=failed, ended=ended, reason=reason)
