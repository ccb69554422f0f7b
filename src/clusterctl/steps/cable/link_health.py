"""The collector of port counters: each reading goes into the fabric's history, and links are judged over days.

Without access to the fabric nothing is measured: the judgement is INCONCLUSIVE with the reason, and work goes on.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from clusterctl.cabling.health.days import thinned, window_over
from clusterctl.cabling.health.findings import HealthFinding, fabric_labels
from clusterctl.cabling.health.groups import HealthGroup, ungrouped
from clusterctl.cabling.health.judge import Health, judge_health
from clusterctl.fleet.errors import EdgeError, ParseError, UsageError
from clusterctl.fleet.event import Event, Kind, NewEvent, Stream
from clusterctl.fleet.fabric.history import COUNTERS, LINKS, known_modules
from clusterctl.fleet.fabric.limits import FabricLimits
from clusterctl.fleet.fabric.telemetry import Telemetry
from clusterctl.fleet.fabric.topology import Fabric
from clusterctl.fleet.fabric.wiring import WiringPlan
from clusterctl.fleet.finding import Digest, Evidence, Finding, Observed, Verdict
from clusterctl.fleet.finding_code import Code
from clusterctl.fleet.payloads.hardware import FabricCountersRead, FabricLinksJudged
from clusterctl.formats.infiniband.fabric_file import decode_fabric, decode_telemetry
from clusterctl.formats.infiniband.ibnetdiscover import parse_ibnetdiscover
from clusterctl.ports import CounterReader, Deadline, FabricReader, Journal

CHECK = "link_health"
DAY = timedelta(days=1)
READ_S = 300.0
_CAUSES = 20
"""Causes that the journal keeps of a judgement; its evidence has all."""
_FIRST = "the counters were read for the first time: no rate is known yet"


@dataclass(frozen=True, slots=True)
class LinkCollector:
    """Reads the error counters of all ports, keeps them, and judges the links over `period`."""

    journal: Journal
    fabric: FabricReader
    counters: CounterReader
    limits: FabricLimits
    plan: WiringPlan
    period: timedelta = DAY

    def look(self, deadline: Deadline) -> FabricLinksJudged:
        """Read fabric and counters, and judge the links; never raises for a fabric that cannot be read."""
        try:
            read = self.fabric.ibnetdiscover(deadline.within(READ_S))
            seen = parse_ibnetdiscover(read.value, file="ibnetdiscover")
        except (EdgeError, ParseError) as error:
            return self._unread(f"the fabric could not be read: {error.message}")
        self.collect(seen, read, deadline)
        judged = [event.payload for event in self.journal.latest(Stream.FABRIC, Kind.FABRIC_LINKS_JUDGED)]
        return next(one for one in reversed(judged) if isinstance(one, FabricLinksJudged))

    def collect(self, seen: Fabric, fabric: Observed[str], deadline: Deadline) -> Health | None:
        """Read the counters of the fabric that was just read, and return the health of its links.

        None where they could not be read, or were read for the first time. The journal has the judgement in any case.
        """
        try:
            read = self.counters.ibqueryerrors(deadline.within(READ_S))
            telemetry = decode_telemetry(read.value.encode(), seen, file="ibqueryerrors")
        except (EdgeError, ParseError) as error:
            self._unread(f"the counters of the ports could not be read: {error.message}")
            return None
        both = (fabric.evidence[0], read.evidence[0])
        self.journal.store(both)
        self.journal.append([counters_read(both, both[1].at, len(telemetry.counters))])
        health = judge_period(self.journal, seen, self.limits, self.plan, both[1].at - self.period)
        self._write(judgement(health) if health is not None else _unmeasured(_FIRST), both)
        return health

    def _unread(self, reason: str) -> FabricLinksJudged:
        found = _unmeasured(reason)
        self._write(found, ())
        return found

    def _write(self, judged: FabricLinksJudged, evidence: Sequence[Evidence]) -> None:
        digests = tuple(item.digest for item in evidence)
        self.journal.append([NewEvent(Stream.FABRIC, LINKS, judged, digests)])


def counters_read(evidence: Sequence[Evidence], at: datetime, ports: int) -> NewEvent:
    """Return the event of one reading: fabric and counters, which may be one text."""
    first, last = evidence[0].digest, evidence[-1].digest
    payload = FabricCountersRead(at=at, fabric=first, counters=last, ports=ports)
    return NewEvent(Stream.FABRIC, COUNTERS, payload, tuple(dict.fromkeys((first, last))))


def judge_period(
    journal: Journal, fabric: Fabric, limits: FabricLimits, plan: WiringPlan, since: datetime
) -> Health | None:
    """Return the health of the links over the readings since then; None where there are fewer than two."""
    events = list(journal.recent((Kind.FABRIC_COUNTERS_READ,), since))
    modules = known_modules(journal.latest(Stream.FABRIC, Kind.FABRIC_TRANSCEIVER_SEEN))
    window = window_over(list(_readings(journal, events)), limits, modules)
    return None if window is None else judge_health(fabric, window, fabric_labels(fabric, plan))


def _readings(journal: Journal, events: Sequence[Event]) -> Iterator[Telemetry]:
    """Yield the readings whose evidence can be read, in order of their times."""
    payloads = [event.payload for event in events if isinstance(event.payload, FabricCountersRead)]
    parsed: dict[Digest, Fabric] = {}
    for payload in thinned(sorted(payloads, key=lambda one: one.at)):
        kept = journal.evidences((payload.fabric, payload.counters))
        if len(kept) < len({payload.fabric, payload.counters}):
            continue
        try:
            if payload.fabric not in parsed:
                parsed[payload.fabric] = decode_fabric(kept[payload.fabric].content, file=COUNTERS)
            found = decode_telemetry(kept[payload.counters].content, parsed[payload.fabric], file=COUNTERS)
        except (ParseError, UsageError):
            continue
        yield replace(found, at=payload.at)


def judgement(health: Health) -> FabricLinksJudged:
    """Return what the journal keeps of a judgement: groups first, then single links, the worst first."""
    single = sorted(ungrouped(health.findings, health.groups), key=lambda one: -one.verdict.rank)
    found: list[HealthGroup | HealthFinding] = [*health.groups, *single]
    lines = [f"{one.verdict.name} {one.cause}; {one.action}" for one in found]
    return FabricLinksJudged(
        verdict=health.verdict.value,
        links=health.links,
        proven=health.proven,
        bad=health.bad,
        seconds=health.seconds,
        causes=tuple(lines[:_CAUSES]),
        more=max(0, len(lines) - _CAUSES),
        reason=health.stop.reason if health.stop is not None else "",
    )


def _unmeasured(reason: str) -> FabricLinksJudged:
    return FabricLinksJudged(verdict=Verdict.INCONCLUSIVE.value, reason=reason)


def warnings_by_node(health: Health, nodes: Sequence[str]) -> Mapping[str, tuple[Finding, ...]]:
    """Return a warning for each bad link of the nodes.

    A warning, because an error of yesterday may be repaired; burn-in measures the link under load and decides.
    """
    wanted = set(nodes)
    found: dict[str, tuple[Finding, ...]] = dict.fromkeys(nodes, ())
    for one in health.findings:
        for end in one.ends if one.verdict is Verdict.FAIL else ():
            if end.device in wanted:
                found[end.device] += (_warning(one, end.port),)
    return found


def _warning(found: HealthFinding, port: str) -> Finding:
    return Finding(
        check=CHECK,
        verdict=Verdict.WARN,
        code=Code.LINK_ERRORS,
        subject=port,
        cause=found.cause,
        remedy=found.action,
        deterministic=False,
    )
