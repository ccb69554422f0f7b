"""The collector of port counters: each reading goes into the fabric's history, and links are judged over days.

Without access to the fabric nothing is measured: the judgement is INCONCLUSIVE with the reason, and work goes on.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from clusterctl.cabling.health.days import MOST, after_repairs, thinned, window_over
from clusterctl.cabling.health.findings import HealthFinding, PortRate, fabric_labels, port_rates, still_bad
from clusterctl.cabling.health.groups import HealthGroup, ungrouped
from clusterctl.cabling.health.judge import FabricHealth, judge_health
from clusterctl.cabling.health.symptoms import HealthWindow
from clusterctl.fleet.errors import ClusterctlError, EdgeError, EnvironmentBrokenError, ParseError, UsageError
from clusterctl.fleet.event import Kind, NewEvent, Stream
from clusterctl.fleet.fabric.history import COUNTERS, LINKS, FabricReading, known_modules
from clusterctl.fleet.fabric.limits import FabricLimits
from clusterctl.fleet.fabric.port_acts import enabled_since
from clusterctl.fleet.fabric.switch_acts import restarted_since, switch_upgrades
from clusterctl.fleet.fabric.telemetry import Telemetry
from clusterctl.fleet.fabric.topology import Fabric, PortId
from clusterctl.fleet.fabric.wiring import WiringPlan
from clusterctl.fleet.finding import Digest, Evidence, Finding, Observed, Verdict
from clusterctl.fleet.finding_code import Code
from clusterctl.fleet.payloads.hardware import BadLinks, FabricCountersRead, FabricLinksJudged
from clusterctl.formats.infiniband.fabric_file import decode_fabric, decode_telemetry
from clusterctl.formats.infiniband.ibnetdiscover import parse_ibnetdiscover
from clusterctl.ports import CounterReader, Deadline, FabricReader, Journal, TelemetryReader
from clusterctl.steps.cable.fabric_record import FabricRecord

CHECK = "link_health"
DAY = timedelta(days=1)
READ_S = 300.0
UNREADABLE = (EdgeError, EnvironmentBrokenError, ParseError, UsageError)
"""A tool that fails, that is not installed, or that prints what is not understood."""
_CAUSES = 20
"""Causes that the journal keeps of a judgement; its evidence has all."""
_FOUND = 200
"""Groups and links that it keeps as data; `_ENDS`: names of each."""
_ENDS = 64
_FIRST = "the counters were read for the first time: no rate is known yet"


@dataclass(frozen=True, slots=True)
class LinkReading:
    """One reading of the links and its judgement.

    fabric    None where it could not be read
    health    None where the counters could not be read, or were read for the first time
    evidence  of the fabric
    """

    judged: FabricLinksJudged
    fabric: Fabric | None = None
    health: FabricHealth | None = None
    evidence: tuple[Evidence, ...] = ()


@dataclass(frozen=True, slots=True)
class LinkCollector:
    """Reads the error counters of all ports, keeps them, and judges the links over `period`, by `most` readings."""

    journal: Journal
    fabric: FabricReader
    counters: CounterReader
    limits: FabricLimits
    plan: WiringPlan
    period: timedelta = DAY
    most: int = MOST

    def look(self, deadline: Deadline, telemetry: TelemetryReader | None = None) -> FabricLinksJudged:
        """Read fabric and counters, and judge the links; never raises for a fabric that cannot be read.

        `telemetry`: reads all at once, with temperatures and transceivers.
        """
        return self.read(deadline, telemetry).judged

    def read(self, deadline: Deadline, telemetry: TelemetryReader | None = None) -> LinkReading:
        """Return the same as `look`, with the fabric, its evidence and the health of its links where they are known."""
        try:
            if telemetry is not None:
                return self._look_at_all(telemetry.db_csv(deadline.within(READ_S)))
            read = self.fabric.ibnetdiscover(deadline.within(READ_S))
            seen = parse_ibnetdiscover(read.value, file="ibnetdiscover")
        except UNREADABLE as error:
            return LinkReading(self._unread(f"the fabric could not be read: {_reason(error)}"))
        health = self.collect(seen, read, deadline)
        judged = [event.payload for event in self.journal.latest(Stream.FABRIC, Kind.FABRIC_LINKS_JUDGED)]
        last = next(one for one in reversed(judged) if isinstance(one, FabricLinksJudged))
        return LinkReading(last, seen, health, read.evidence)

    def _look_at_all(self, read: Observed[str]) -> LinkReading:
        """Keep and judge a reading that has all in one text. Raises `ParseError`."""
        data = read.value.encode()
        seen = decode_fabric(data, file="db_csv")
        telemetry = decode_telemetry(data, seen, file="db_csv")
        if not telemetry.counters:
            judged = self._unread("the counters of the ports could not be read: the db_csv has none")
            return LinkReading(judged, seen, None, read.evidence)
        FabricRecord(self.journal).write(FabricReading(seen, telemetry), read.evidence)
        self.journal.append([counters_read(read.evidence, read.evidence[0].at, len(telemetry.counters))])
        health, judged = self._judge(seen, read.evidence)
        return LinkReading(judged, seen, health, read.evidence)

    def collect(self, seen: Fabric, fabric: Observed[str], deadline: Deadline) -> FabricHealth | None:
        """Read the counters of the fabric that was just read, and return the health of its links.

        None where they could not be read, or were read for the first time. The journal has the judgement in any case.
        A tool that hangs takes a third of the time that is left: the step has its own work.
        """
        try:
            read = self.counters.ibqueryerrors(deadline.within(min(READ_S, deadline.remaining / 3)))
            telemetry = decode_telemetry(read.value.encode(), seen, file="ibqueryerrors")
        except UNREADABLE as error:
            self._unread(f"the counters of the ports could not be read: {_reason(error)}")
            return None
        both = (fabric.evidence[0], read.evidence[0])
        self.journal.store(both)
        self.journal.append([counters_read(both, both[1].at, len(telemetry.counters))])
        return self._judge(seen, both)[0]

    def _judge(self, seen: Fabric, evidence: Sequence[Evidence]) -> tuple[FabricHealth | None, FabricLinksJudged]:
        """Judge the links over the period that ends with this reading, and write it."""
        since = evidence[-1].at - self.period
        found = judge_period(self.journal, seen, self.limits, self.plan, since, self.most)
        judged = judgement(found.health) if found is not None else _unmeasured(_FIRST)
        self._write(judged, evidence)
        return found.health if found is not None else None, judged

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


@dataclass(frozen=True, slots=True)
class PeriodHealth:
    """The health of all links over the readings of a time, and the mean rates of their ports."""

    health: FabricHealth
    rates: tuple[PortRate, ...]


def judge_period(
    journal: Journal, fabric: Fabric | None, limits: FabricLimits, plan: WiringPlan, since: datetime, most: int = MOST
) -> PeriodHealth | None:
    """Judge the links over the readings since then; return None where there are fewer than two.

    A link that the last judgement found bad, and whose error counter is full, stays bad.

    fabric  as it is now; None: as the last reading had it
    """
    read = period_readings(journal, since, most)
    modules = known_modules(journal.latest(Stream.FABRIC, Kind.FABRIC_TRANSCEIVER_SEEN))
    window = window_over([telemetry for _, telemetry in read], limits, modules)
    if window is None:
        return None
    window = after_repairs(window, [telemetry for _, telemetry in read], counting_since(journal))
    now = fabric or read[-1][0]
    labels = fabric_labels(now, plan)
    further = still_bad(_last_found(journal, since - DAY), window, now.cables(), labels)
    health = judge_health(now, window, labels, under_load=further)
    return PeriodHealth(health, tuple(port_rates(now, window, labels)))


def counting_since(journal: Journal) -> dict[PortId, datetime]:
    """Return from when on the counters count of links that were repaired, or whose switch restarted since."""
    intended = list(journal.latest(Stream.FABRIC, Kind.ACT_INTENDED))
    both = sorted([*intended, *journal.latest(Stream.FABRIC, Kind.ACT_OBSERVED)], key=lambda event: event.seq)
    found = enabled_since(intended)
    for port, at in restarted_since(switch_upgrades(both).values()).items():
        found[port] = max(at, found.get(port, at))
    return found


def _last_found(journal: Journal, since: datetime) -> tuple[BadLinks, ...]:
    """Return what the last judgement that measured links found; older ones than the last are read since then only."""
    last = [event.payload for event in journal.latest(Stream.FABRIC, Kind.FABRIC_LINKS_JUDGED)][-1:]
    if not (last and isinstance(last[0], FabricLinksJudged) and last[0].links):
        last = [event.payload for event in journal.recent((Kind.FABRIC_LINKS_JUDGED,), since)]
    measured = (one for one in reversed(last) if isinstance(one, FabricLinksJudged) and one.links)
    return next((one.found for one in measured), ())


def judge_link(
    journal: Journal, alone: Fabric, limits: FabricLimits, plan: WiringPlan, since: datetime
) -> FabricHealth | None:
    """Judge one link over the readings since then; return None where there are fewer than two.

    alone  the fabric with this link only: of each reading no more is decoded
    """
    window = link_window(journal, alone, limits, since)
    return judge_health(alone, window, fabric_labels(alone, plan)) if window is not None else None


def link_window(journal: Journal, alone: Fabric, limits: FabricLimits, since: datetime) -> HealthWindow | None:
    """Return what the counters of few links did over the readings since then; None where there are fewer than two.

    alone  the fabric with these links only: of each reading no more is decoded
    """
    read: list[Telemetry] = []
    for payload in _payloads(journal, since, MOST):
        kept = journal.evidences((payload.counters,))
        try:
            found = [decode_telemetry(item.content, alone, file=COUNTERS) for item in kept.values()]
        except (ParseError, UsageError):
            continue
        read += [replace(one, at=payload.at) for one in found]
    return window_over(read, limits, {})


def period_readings(journal: Journal, since: datetime, most: int = MOST) -> list[tuple[Fabric, Telemetry]]:
    """Return the readings of counters since then that the journal can still decode, in order of their times."""
    return list(_readings(journal, _payloads(journal, since, most)))


def _payloads(journal: Journal, since: datetime, most: int) -> list[FabricCountersRead]:
    """Return at most `most` of the readings since then, in order of their times."""
    events = journal.recent((Kind.FABRIC_COUNTERS_READ,), since)
    found = [event.payload for event in events if isinstance(event.payload, FabricCountersRead)]
    return thinned(sorted(found, key=lambda one: one.at), most)


def _readings(journal: Journal, payloads: Sequence[FabricCountersRead]) -> Iterator[tuple[Fabric, Telemetry]]:
    """Yield the readings whose evidence can be read, in order of their times."""
    parsed: dict[Digest, Fabric] = {}
    for payload in payloads:
        kept = journal.evidences((payload.fabric, payload.counters))
        if len(kept) < len({payload.fabric, payload.counters}):
            continue
        try:
            if payload.fabric not in parsed:
                parsed[payload.fabric] = decode_fabric(kept[payload.fabric].content, file=COUNTERS)
            fabric = parsed[payload.fabric]
            found = decode_telemetry(kept[payload.counters].content, fabric, file=COUNTERS)
        except (ParseError, UsageError):
            continue
        yield fabric, replace(found, at=payload.at)


def judgement(health: FabricHealth) -> FabricLinksJudged:
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
        found=tuple(map(_bad_links, found[:_FOUND])),
        more=max(0, len(lines) - _CAUSES),
        reason=health.stop.reason if health.stop is not None else "",
    )


def _bad_links(one: HealthGroup | HealthFinding) -> BadLinks:
    if isinstance(one, HealthGroup):
        ends = dict.fromkeys(subject for member in one.members for subject in member.subjects)
        shared, value, count = one.shared.value, one.value, one.count
    else:
        ends, shared, value, count = dict.fromkeys(one.subjects), "", "", one.links
    return BadLinks(
        kind=one.kind.value,
        verdict=one.verdict.value,
        cause=one.cause,
        action=one.action,
        shared=shared,
        value=value,
        rack=one.rack,
        count=count,
        ends=tuple(ends)[:_ENDS],
    )


def _unmeasured(reason: str) -> FabricLinksJudged:
    return FabricLinksJudged(verdict=Verdict.INCONCLUSIVE.value, reason=reason)


def warnings_by_node(health: FabricHealth, nodes: Sequence[str]) -> Mapping[str, tuple[Finding, ...]]:
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


def _reason(error: ClusterctlError) -> str:
    return f"{error.message} ({error.where})" if error.where else error.message
