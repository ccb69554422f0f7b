"""What clusterctl itself exports to Prometheus: the fleet, its evidence, its steps and nights, the journal.

Label sets are bounded: stages, SKUs, steps, codes of findings, names of nodes and checks; never a serial, an address or
a text of a peer. Of a node, each check or load has one figure: its worst part's.
"""

from __future__ import annotations

import json
import math
import statistics
import threading
from collections import Counter, defaultdict, deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from pathlib import Path

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from clusterctl import __version__
from clusterctl.edges.clock import CLOCK
from clusterctl.edges.site.certificate_record import read_certificates
from clusterctl.edges.site.figure_record import COLUMNS, FigureRecord
from clusterctl.edges.site.night_record import read_record
from clusterctl.fleet.bmc.certificates import SeenCertificate
from clusterctl.fleet.event import Event, Kind, Stream
from clusterctl.fleet.finding import Finding, Report, Verdict
from clusterctl.fleet.finding_code import Code
from clusterctl.fleet.hardware.parts import words_of
from clusterctl.fleet.nightly.record import NightRecord, gauges
from clusterctl.fleet.node import NodeId, Stage, Step
from clusterctl.fleet.payloads.hardware import FabricFault, FabricLinksJudged
from clusterctl.fleet.payloads.jobs import JobAttributed
from clusterctl.fleet.payloads.node import ReportRecorded, StepStarted
from clusterctl.fleet.quantity import Bound, Quantity
from clusterctl.fleet.reporting.offenders import Offenders
from clusterctl.fleet.reporting.spares import Spares
from clusterctl.fleet.state import NodeState
from clusterctl.operations.collector import collector_paused
from clusterctl.operations.context import SiteContext, on_replica
from clusterctl.operations.documents import write_document
from clusterctl.operations.expected_parts import NOTHING, Expectations, ExpectedParts, expectations
from clusterctl.operations.figures import (
    NodeFigures,
    bounds_of,
    bounds_text,
    expected_text,
    from_row,
    to_row,
)
from clusterctl.operations.gold_pool import spares_of
from clusterctl.operations.offenders import known_offenders
from clusterctl.operations.site_facts import state_dir
from clusterctl.ports.journal import JournalHealth

WINDOW = timedelta(hours=24)
"""Steps that ended in it have their durations exported."""
JOB_WINDOW = timedelta(days=7)
"""Failures of jobs that were attributed in it are counted."""
_QUANTILES = (0.5, 0.9, 1.0)
FORM = 1
"""Of the figures that are kept: raised with each change of what is made of a state."""
VERSION = COLUMNS.index("version")


def figures_of(node: NodeState, expected: ExpectedParts = NOTHING) -> NodeFigures:
    """Return what the metrics need of a node; its reports take a hundred times the memory."""
    proven_at = node.reported_at.get(Step.BURNIN.value) if node.stage is Stage.GOLD else None
    worst = _worst(node) if node.stage is not Stage.RETIRED else {}
    return NodeFigures(
        name=node.name,
        serial=node.serial,
        stage=node.stage,
        sku=node.sku,
        hold=node.hold,
        stopped=_stopped(node) if node.stopped_at is not None and node.stage is not Stage.RETIRED else None,
        acts=tuple(intent.act.value for intent in node.open_acts),
        proven_at=proven_at,
        since=node.since,
        worst=worst,
        bounds=bounds_text(worst),
        parts=words_of(node) if node.stage is not Stage.RETIRED else "",
        address=node.address,
        location=node.location,
        expected=expected_text(expected),
        lines={
            family.name: _samples_of(family)
            for family in (*_of_node(node.name, proven_at, worst), *_expected_of(node.name, expected))
        },
    )


def _expecting(node: NodeFigures, expected: ExpectedParts) -> NodeFigures:
    """Return the figures with what is expected of the node now; the site may have changed since they were kept."""
    text = expected_text(expected)
    if text == node.expected:
        return node
    lines = {family.name: _samples_of(family) for family in _expected_of(node.name, expected)}
    return replace(node, expected=text, lines={**node.lines, **lines})


@dataclass(frozen=True, slots=True, kw_only=True)
class StepEnd:
    """One report of a step, recorded `seconds` after the step had begun; None where that is not known."""

    at: datetime
    step: str
    verdict: str
    seconds: float | None


@dataclass(frozen=True, slots=True)
class FleetSnapshot:
    """What the metrics are made of, as of `now`.

    steps      those that ended within the last `WINDOW`
    links      the last judgement of all links; None before the first
    incidents  the open ones by what they are about and their severity
    jobs       failures within `JOB_WINDOW` by layer and certainty
    certificates   of BMCs, by node, as last seen
    due        by when a night has to come to its end; None where the site has no nights, or no node for the first
    """

    site: str
    now: datetime
    nodes: Sequence[NodeFigures]
    steps: Sequence[StepEnd]
    faults: Sequence[FabricFault]
    night: NightRecord | None
    spares: Spares | None
    offenders: Offenders
    journal: JournalHealth
    links: FabricLinksJudged | None = None
    incidents: Mapping[tuple[str, str], int] = field(default_factory=dict)
    jobs: Mapping[tuple[str, str], int] = field(default_factory=dict)
    due: datetime | None = None
    certificates: Mapping[str, SeenCertificate] = field(default_factory=dict)


@dataclass
class StepEnds:
    """The steps that ended within the last `WINDOW`, from events that are given once, in their order."""

    seq: int = 0
    ends: deque[StepEnd] = field(default_factory=deque)
    began: dict[tuple[str, str], datetime] = field(default_factory=dict)

    def add(self, events: Iterable[Event], now: datetime) -> None:
        """Take the events that are new, and forget what is older than the window."""
        for event in events:
            if event.seq <= self.seq:
                continue
            self.seq = event.seq
            if isinstance(event.payload, StepStarted):
                self.began[event.subject, event.payload.step.value] = event.at
            elif isinstance(event.payload, ReportRecorded):
                self._end(event, event.payload.report)
        while self.ends and self.ends[0].at < now - WINDOW:
            self.ends.popleft()
        self.began = {key: at for key, at in self.began.items() if at >= now - WINDOW}

    def text(self) -> str:
        """Return it as JSON, for `steps_of`."""
        ends = [(end.at.isoformat(), end.step, end.verdict, end.seconds) for end in self.ends]
        return json.dumps([self.seq, ends, [(*key, at.isoformat()) for key, at in self.began.items()]])

    def _end(self, event: Event, report: Report) -> None:
        begun = self.began.pop((event.subject, report.step), None)
        seconds = None if begun is None else (event.at - begun).total_seconds()
        self.ends.append(StepEnd(at=event.at, step=report.step, verdict=report.verdict.value, seconds=seconds))


def steps_of(text: str) -> StepEnds:
    """Return the steps that were kept as a text; none of an empty one. Raise `ValueError` for any other."""
    if not text:
        return StepEnds()
    seq, ends, began = json.loads(text)
    found = (
        StepEnd(at=datetime.fromisoformat(at), step=step, verdict=verdict, seconds=seconds)
        for at, step, verdict, seconds in ends
    )
    return StepEnds(seq, deque(found), {(node, step): datetime.fromisoformat(at) for node, step, at in began})


@dataclass
class FleetMetrics:
    """The metrics of a site, for a service that is asked again and again: it reads what has changed. Thread-safe.

    What it has made of each state is kept in the site's record of figures, by the state's version: a process that is
    started later reads the states that have changed since, and makes the same of them as one that reads all.
    """

    context: SiteContext
    _nodes: dict[NodeId, NodeFigures] = field(default_factory=dict)
    _steps: StepEnds = field(default_factory=StepEnds)
    _seq: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _expected: Expectations = field(init=False)
    _record: FigureRecord = field(init=False)
    _unkept: dict[NodeId, str] = field(default_factory=dict)
    _gone: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        self._expected = expectations(self.context.site)
        self._record = FigureRecord(state_dir(self.context.site), f"{__version__} {FORM}")

    def read_all(self, stopped: Callable[[], bool]) -> None:
        """Read all nodes before the first question, which takes seconds for thousands; give up where `stopped`."""
        with self._lock:
            if not self._seq:
                self._read_all(self.context.journal.health().last_seq, stopped)

    def export(self) -> bytes:
        """Return the site's metrics of this moment, in UTF-8."""
        return self.text().encode()

    def text(self) -> str:
        """Return the site's metrics of this moment."""
        with self._lock:
            return exposition(self._snapshot())

    def figures(self) -> tuple[NodeFigures, ...]:
        """Return what is known of each node now."""
        with self._lock:
            self._read_nodes(self.context.journal.health().last_seq)
            return tuple(self._nodes.values())

    def _snapshot(self) -> FleetSnapshot:
        """Read the journal and the site's records."""
        context, now = self.context, CLOCK.now()
        health = context.journal.health()
        self._read_nodes(health.last_seq)
        journal, kinds = context.journal, (Kind.STEP_STARTED, Kind.REPORT_RECORDED)
        self._steps.add(
            journal.later(kinds, self._steps.seq) if self._steps.seq else journal.recent(kinds, now - WINDOW), now
        )
        return self._found(now, health)

    def _read_nodes(self, last: int) -> None:
        """Read the nodes with newer events; at first all."""
        if not self._seq:
            self._read_all(last, lambda: False)
        elif last > self._seq:
            versions = self.context.journal.state_versions(self._seq)
            changed = {state.id: self._of(state) for state in self.context.journal.states(since=self._seq)}
            self._take(changed, versions)
            self._seq = last

    def _read_all(self, last: int, stopped: Callable[[], bool]) -> None:
        """Take what is kept, and read the other nodes, some after the others: whole states take memory."""
        versions = self.context.journal.state_versions()
        kept, self._steps = self._kept(versions, last)
        nodes = {node: _expecting(one, self._expected.of(one)) for node, one in kept.items()}
        changed = {node: one for node, one in nodes.items() if one is not kept[node]}
        for state in self.context.journal.each_state(without=kept):
            if stopped():
                return
            changed[state.id] = self._of(state)
        self._nodes = nodes
        self._take(changed, versions)
        self._seq = last

    def _kept(self, versions: Mapping[NodeId, str], last: int) -> tuple[dict[NodeId, NodeFigures], StepEnds]:
        """Return what is kept of states that are the same, and of steps up to the event `last`."""
        rows, text = self._record.read()
        self._gone = rows.keys() - versions.keys()
        try:
            steps = steps_of(text)
            found = ((NodeId(node), row) for node, row in rows.items())
            return {node: from_row(row) for node, row in found if versions.get(node) == row[VERSION]}, (
                steps if steps.seq <= last else StepEnds()
            )
        except (ValueError, TypeError):
            return {}, StepEnds()

    def _take(self, changed: Mapping[NodeId, NodeFigures], versions: Mapping[NodeId, str]) -> None:
        """Take new figures, to be kept under versions that were read before the states: newer ones are read again."""
        self._nodes |= changed
        self._unkept |= {node: versions[node] for node in changed if node in versions}

    def keep(self) -> None:
        """Keep the figures for the next process that exports them."""
        with self._lock:
            if not self._seq:
                return
            rows = {str(node): to_row(self._nodes[node], version) for node, version in self._unkept.items()}
            self._record.write(rows, self._gone, self._steps.text())
            self._unkept, self._gone = {}, set()

    def _of(self, node: NodeState) -> NodeFigures:
        return figures_of(node, self._expected.of(node))

    def _found(self, now: datetime, health: JournalHealth) -> FleetSnapshot:
        context = self.context
        record, settings = read_record(state_dir(context.site)), context.site.settings.nightly
        return FleetSnapshot(
            site=context.site.settings.name,
            now=now,
            nodes=sorted(self._nodes.values(), key=lambda node: node.name),
            steps=tuple(self._steps.ends),
            faults=context.faults(),
            night=None if _by_the_night(context) else record,
            spares=spares_of(context.site, sum(_in_pool(node, now) for node in self._nodes.values())),
            offenders=known_offenders(context, (node.serial for node in self._nodes.values())),
            journal=health,
            links=_last_judgement(context),
            incidents=Counter(
                (state.facts.what.value, state.facts.severity.value)
                for state in context.journal.incidents(unfinished=True)
                if state.open and state.facts is not None
            ),
            jobs=_job_failures(context, now),
            due=None if settings is None else night_due(record, self._nodes.values(), settings.alarm_hours),
            certificates=read_certificates(state_dir(context.site)),
        )


def _in_pool(node: NodeFigures, now: datetime) -> bool:
    return node.stage is Stage.GOLD and (node.hold is None or not node.hold.active(now))


def night_due(record: NightRecord | None, nodes: Iterable[NodeFigures], alarm_hours: int) -> datetime | None:
    """Return by when the next night has to come to its end. None: no node is gold, and no night ever ended.

    The first night has a day more: a node may become gold just after the window has opened.
    """
    alarm = timedelta(hours=alarm_hours)
    if record is not None and record.ended is not None:
        return record.ended + alarm
    gold = [node.since for node in nodes if node.stage is Stage.GOLD and node.since is not None]
    return min(gold) + timedelta(days=1) + alarm if gold else None


def _last_judgement(context: SiteContext) -> FabricLinksJudged | None:
    judged = [event.payload for event in context.journal.latest(Stream.FABRIC, Kind.FABRIC_LINKS_JUDGED)]
    found = [payload for payload in judged if isinstance(payload, FabricLinksJudged)]
    return found[-1] if found else None


def _job_failures(context: SiteContext, now: datetime) -> Mapping[tuple[str, str], int]:
    events = context.journal.recent((Kind.JOB_ATTRIBUTED,), now - JOB_WINDOW)
    return Counter(
        (event.payload.layer.value, event.payload.certainty.value)
        for event in events
        if isinstance(event.payload, JobAttributed)
    )


def _by_the_night(context: SiteContext) -> bool:
    """Return whether each night writes its own metrics: a collector refuses a metric that two files hold."""
    settings = context.site.settings.nightly
    return settings is not None and bool(settings.metrics)


def exposition(found: FleetSnapshot) -> str:
    """Return Prometheus's text format (https://prometheus.io/docs/instrumenting/exposition_formats/)."""
    parts = [_text_of(_Families(found))]
    for family in (*_node_families(), *_expected_families()):
        parts += [_head_of(family), *(node.lines[family.name] for node in found.nodes)]
    return "".join(parts)


def _text_of(collector: Collector) -> str:
    registry = CollectorRegistry(auto_describe=False)
    registry.register(collector)
    return generate_latest(registry).decode()


def export(context: SiteContext) -> str:
    """Return the site's metrics of this moment."""
    with collector_paused():
        metrics = FleetMetrics(on_replica(context))
        text = metrics.text()
        metrics.keep()
        return text


def write(context: SiteContext, file: Path) -> int:
    """Write them whole or not at all, readable for node_exporter; return the number of bytes. Raises `UsageError`."""
    exported = export(context)
    write_document(file, exported, option="FILE", force=True)
    file.chmod(0o644)
    return len(exported.encode())


class _OneFamily(Collector):
    """A collector of one family."""

    def __init__(self, family: Metric) -> None:
        self._family = family

    def collect(self) -> Iterator[Metric]:
        yield self._family


class _Families(Collector):
    """A collector of one snapshot, without the families that have a sample for each node."""

    def __init__(self, found: FleetSnapshot) -> None:
        self._found = found

    def collect(self) -> Iterator[Metric]:
        found = self._found
        yield _one("build_info", "The version that exports; always 1.", 1, {"version": __version__, "site": found.site})
        yield _one("metrics_timestamp_seconds", "When these metrics were read.", found.now.timestamp())
        yield from _fleet(found.nodes, found.now)
        yield _limits(found.nodes)
        yield from _steps(found.steps)
        yield _counted(
            "fabric_faults", "Open faults of the fabric.", Counter(fault.kind for fault in found.faults), "kind"
        )
        yield from _links(found.links)
        yield from _troubles(found)
        yield from (_one(*gauge) for gauge in (gauges(found.night) if found.night else ()))
        yield from _due(found.due)
        yield from _certificates(found.certificates)
        yield from _pool(found)
        yield from _journal(found.journal)


def _family(name: str, text: str, labels: Sequence[str] = ()) -> GaugeMetricFamily:
    return GaugeMetricFamily(f"clusterctl_{name}", text, labels=labels)


def _one(name: str, text: str, value: float, labels: Mapping[str, str] | None = None) -> GaugeMetricFamily:
    family = _family(name, text, tuple(labels or ()))
    family.add_metric(tuple((labels or {}).values()), value)
    return family


def _counted(name: str, text: str, counts: Mapping[str, float], label: str) -> GaugeMetricFamily:
    family = _family(name, text, (label,))
    for key, count in sorted(counts.items()):
        family.add_metric((key,), count)
    return family


def _fleet(nodes: Sequence[NodeFigures], now: datetime) -> Iterator[Metric]:
    stages = _family("nodes", "Nodes by stage and SKU; empty before a SKU was matched.", ("stage", "sku"))
    for (stage, sku), count in sorted(Counter((node.stage.value, node.sku) for node in nodes).items()):
        stages.add_metric((stage, sku), count)
    yield stages
    held = sum(node.hold is not None and node.hold.active(now) for node in nodes)
    yield _one("nodes_on_hold", "Nodes that an operator holds.", held)
    stopped = _family(
        "nodes_stopped",
        "Nodes that a step or an operator stopped, by the code of the worst finding.",
        ("stage", "step", "code"),
    )
    reasons = Counter(node.stopped for node in nodes if node.stopped is not None)
    for reason, count in sorted(reasons.items()):
        stopped.add_metric(reason, count)
    yield stopped
    acts = Counter(act for node in nodes for act in node.acts)
    yield _counted("acts_in_flight", "Acts on machines that have begun and have no result yet.", acts, "act")


def _stopped(node: NodeState) -> tuple[str, str, str]:
    code = "operator" if node.stopped_by else node.findings[0].code.value if node.findings else "none"
    return node.stage.value, node.stopped_at.value if node.stopped_at else "", code


def _node_families() -> tuple[GaugeMetricFamily, GaugeMetricFamily]:
    """Return the families with a sample for each node, without samples."""
    return (
        _family("evidence_timestamp_seconds", "When a gold node's last burn-in was recorded.", ("node",)),
        _family("burnin_figure", "The worst part's figure of a node's last report.", ("node", "check", "unit")),
    )


def _of_node(
    name: str, proven_at: datetime | None, worst: Mapping[tuple[str, str], tuple[float, Bound]]
) -> tuple[GaugeMetricFamily, GaugeMetricFamily]:
    """Return the same families with the samples of one node."""
    proven, figures = _node_families()
    if proven_at is not None:
        proven.add_metric((name,), proven_at.timestamp())
    for (check, unit), (value, _) in sorted(worst.items()):
        figures.add_metric((name, check, unit), value)
    return proven, figures


def _expected_families() -> tuple[GaugeMetricFamily, GaugeMetricFamily]:
    """Return the families with what monitoring has to see of each node, without samples."""
    return (
        _family("expected_parts", "Parts that an installed node has by its SKU.", ("node", "part")),
        _family("expected_zpool", "A ZFS pool that an installed node has by its roles; always 1.", ("node", "zpool")),
    )


def _expected_of(name: str, expected: ExpectedParts) -> tuple[GaugeMetricFamily, GaugeMetricFamily]:
    """Return the same families with the samples of one node."""
    parts, zpools = _expected_families()
    for part, count in sorted(expected.counts.items()):
        parts.add_metric((name, part), count)
    for zpool in expected.zpools:
        zpools.add_metric((name, zpool), 1)
    return parts, zpools


def _head_of(family: GaugeMetricFamily) -> str:
    """Return the comments before the samples of a family."""
    return "".join(line for line in _lines(family) if line.startswith("#"))


def _samples_of(family: GaugeMetricFamily) -> str:
    """Return the samples of a family as lines of the text format."""
    return "".join(line for line in _lines(family) if not line.startswith("#"))


def _lines(family: GaugeMetricFamily) -> list[str]:
    return [f"{line}\n" for line in _text_of(_OneFamily(family)).split("\n") if line]


def _limits(nodes: Sequence[NodeFigures]) -> Metric:
    limits = _family("burnin_limit", "What figures are compared with.", ("sku", "check", "unit", "side"))
    known: dict[tuple[str, str, str, str], float] = {}
    distinct: dict[tuple[str, str], None] = {}
    for node in nodes:  # the last node of several with other limits counts
        distinct.pop((node.sku, node.bounds), None)
        distinct[node.sku, node.bounds] = None
    for sku, bounds in distinct:
        for (check, unit), bound in bounds_of(bounds):
            for side, limit in (("min", bound.low), ("max", bound.high)):
                if limit is not None:
                    known[sku, check, unit, side] = limit
    for labels, limit in sorted(known.items()):
        limits.add_metric(labels, limit)
    return limits


def _worst(node: NodeState) -> Mapping[tuple[str, str], tuple[float, Bound]]:
    """Return each check's worst figure by check and unit: the one nearest to its limit or farthest beyond it."""
    worst: dict[tuple[str, str], tuple[float, Bound]] = {}
    for report in node.reports.values():
        for finding in report.findings:
            judged = _judged(finding)
            if judged is None:
                continue
            key, (value, bound) = judged
            if key not in worst or margin(value, bound) < margin(*worst[key]):
                worst[key] = value, bound
    return worst


def _judged(finding: Finding) -> tuple[tuple[str, str], tuple[float, Bound]] | None:
    measured, expected = finding.measured, finding.expected
    if finding.verdict is Verdict.NOT_APPLICABLE or finding.code is Code.NO_LIMIT:
        return None
    if not isinstance(measured, Quantity) or not isinstance(expected, Bound):
        return None
    return (finding.check, measured.unit), (measured.value, expected)


def margin(value: float, bound: Bound) -> float:
    """Return how far a value is from the nearer of its limits; below zero beyond it, infinity without limits."""
    margins = [value - bound.low] if bound.low is not None else []
    margins += [bound.high - value] if bound.high is not None else []
    return min(margins, default=math.inf)


def _steps(ends: Iterable[StepEnd]) -> Iterator[Metric]:
    durations: dict[str, list[float]] = defaultdict(list)
    reports: Counter[tuple[str, str]] = Counter()
    for end in ends:
        reports[end.step, end.verdict] += 1
        if end.seconds is not None:
            durations[end.step].append(end.seconds)
    seconds = _family(
        "step_duration_seconds", "Durations of a node's steps that ended in the last 24 hours.", ("step", "quantile")
    )
    for step, values in sorted(durations.items()):
        for quantile in _QUANTILES:
            seconds.add_metric((step, f"{quantile:g}"), _quantile(values, quantile))
    yield seconds
    ended = _family("step_reports", "Reports of steps in the last 24 hours.", ("step", "verdict"))
    for labels, count in sorted(reports.items()):
        ended.add_metric(labels, count)
    yield ended


def _quantile(values: Sequence[float], quantile: float) -> float:
    if len(values) == 1 or quantile == 1:
        return max(values)
    return statistics.quantiles(values, n=100, method="inclusive")[round(quantile * 100) - 1]


def _links(judged: FabricLinksJudged | None) -> Iterator[Metric]:
    """Yield how many links were judged, and the bad ones by kind and rack. No value before the first judgement."""
    counts = {"judged": judged.links, "proven": judged.proven, "bad": judged.bad} if judged else {}
    yield _counted("links", "Links of the last judgement: all, those that are proven, and bad ones.", counts, "what")
    bad = _family("bad_links", "Bad links and modules of the last judgement.", ("kind", "verdict", "rack"))
    by_kind: Counter[tuple[str, str, str]] = Counter()
    for one in judged.found if judged else ():
        by_kind[one.kind, one.verdict, one.rack] += one.count
    for labels, count in sorted(by_kind.items()):
        bad.add_metric(labels, count)
    yield bad


def _troubles(found: FleetSnapshot) -> Iterator[Metric]:
    incidents = _family("incidents", "Open incidents.", ("about", "severity"))
    for labels, count in sorted(found.incidents.items()):
        incidents.add_metric(labels, count)
    yield incidents
    jobs = _family("job_failures", "Failures of jobs that were attributed in the last 7 days.", ("layer", "certainty"))
    for labels, count in sorted(found.jobs.items()):
        jobs.add_metric(labels, count)
    yield jobs


def _due(due: datetime | None) -> Iterator[Metric]:
    if due is not None:
        yield _one("night_due_timestamp_seconds", "By when a night has to come to its end.", due.timestamp())


def _certificates(found: Mapping[str, SeenCertificate]) -> Iterator[Metric]:
    """Yield when certificates expire; without a sample for a BMC that was never asked."""
    expiry = _family("bmc_certificate_expiry_timestamp_seconds", "When the certificate of a BMC expires.", ["node"])
    seen = _family("bmc_certificate_seen_timestamp_seconds", "When that was last seen.", ["node"])
    due = _family("bmc_certificate_due", "1 where it is to be renewed, by the site's rule.", ["node"])
    for node, one in sorted(found.items()):
        expiry.add_metric([node], one.not_after.timestamp())
        seen.add_metric([node], one.seen.timestamp())
        due.add_metric([node], float(one.due))
    yield from (expiry, seen, due)


def _pool(found: FleetSnapshot) -> Iterator[Metric]:
    if found.spares is not None:
        counts = {"needed": found.spares.needed, "spares": found.spares.wanted, "missing": found.spares.missing}
        yield _counted(
            "pool_nodes", "Nodes that the work needs, spares on top of them, and what gold lacks.", counts, "what"
        )
    offenders = {"nodes": len(found.offenders.nodes), "parts": len(found.offenders.parts)}
    yield _counted("repeat_offenders", "Nodes and parts that failed repeatedly in 28 days.", offenders, "what")


def _journal(health: JournalHealth) -> Iterator[Metric]:
    yield _one("journal_up", "Whether the journal was read.", 1)
    yield _one("journal_bytes", "Size of the journal's database.", health.bytes)
    yield _one("journal_last_seq", "Number of the last event.", health.last_seq)
    last = health.last_at.timestamp() if health.last_at else 0.0
    yield _one("journal_last_event_timestamp_seconds", "When the last event was written; 0: there is none.", last)
    yield _one("claims", "Nodes that a run acts on at this moment.", health.claims)
