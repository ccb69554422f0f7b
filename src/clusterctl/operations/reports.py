"""Reports of the fleet, of one node and of work orders. They only read, and are bounded."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from pathlib import Path

from clusterctl.edges.clock import CLOCK
from clusterctl.fleet.event import Event, Kind, Stream
from clusterctl.fleet.fabric.history import open_faults
from clusterctl.fleet.finding import Digest, Evidence, Finding, Verdict, passed
from clusterctl.fleet.natural_order import natural_key
from clusterctl.fleet.node import NodeId, Stage
from clusterctl.fleet.payloads.hardware import FabricFault, FabricLinksJudged
from clusterctl.fleet.reporting.figures import ReportFigure, figures
from clusterctl.fleet.reporting.offenders import NONE, Offenders
from clusterctl.fleet.reporting.rma import Rma
from clusterctl.fleet.reporting.work_orders import Planned, WorkOrder, walking, work_orders
from clusterctl.fleet.state import NodeState, NodeSummary
from clusterctl.operations.collector import collector_paused
from clusterctl.operations.context import SiteContext
from clusterctl.operations.gold_pool import expiry_of
from clusterctl.operations.maintenance_status import unfinished_notes
from clusterctl.operations.node_case import SHOWN, NodeCase, case
from clusterctl.operations.offenders import known_offenders
from clusterctl.operations.rma import known_rmas
from clusterctl.operations.trust import notices
from clusterctl_burnin.limits.limit import Limits
from clusterctl_burnin.recordings.pair_figures import PairFigure, pair_figure
from clusterctl_burnin.suites.suite import IB_WRITE_BW

MOST_CASES = 250
"""Stopped nodes that are shown with their evidence; a page stays small enough to be mailed."""
WHOLE_MATRIX = 64
"""Up to this number of nodes every pair is read; of more, those of nodes with a load that did not pass."""
MOST_PAIRS = 3000
"""Pieces of evidence that are read for the pairs at most."""


@dataclass(frozen=True, slots=True)
class ReportOverview:
    """What a report states in addition to its nodes.

    unproven   sentences about what the site trusts without proof
    faults     of the fabric itself
    offenders  machines and parts that failed repeatedly
    expiry     age that a gold node's burn-in may reach; None where the site names none
    links      the last judgement of the fabric's links, and when; None where there is none
    rmas       open returns of parts to their vendors
    plans      rolling changes that are half done, one line each
    """

    site: str
    simulated: bool
    now: datetime
    unproven: tuple[str, ...] = ()
    faults: tuple[FabricFault, ...] = ()
    offenders: Offenders = NONE
    expiry: timedelta | None = None
    links: tuple[datetime, FabricLinksJudged] | None = None
    rmas: tuple[Rma, ...] = ()
    plans: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class PairReadings:
    """Bandwidths between pairs of nodes.

    at_least  the limit in Gb/s
    unread    pieces of evidence that were not read
    whole     False where only those of nodes with a load that did not pass were read
    """

    figures: tuple[PairFigure, ...]
    at_least: float
    unread: int
    whole: bool


@dataclass(frozen=True, slots=True)
class FleetReport:
    """`cases` in the order of a walk through the racks; `omitted`: stopped nodes beyond them."""

    overview: ReportOverview
    nodes: tuple[NodeState, ...]
    cases: tuple[NodeCase, ...]
    omitted: int
    figures: tuple[ReportFigure, ...]
    pairs: PairReadings

    @property
    def gold(self) -> int:
        return sum(node.in_pool(self.overview.now) for node in self.nodes)

    @property
    def stopped(self) -> int:
        return len(self.cases) + self.omitted

    @property
    def held(self) -> int:
        return sum(node.held(self.overview.now) and node.stopped_at is None for node in self.nodes)

    @property
    def retired(self) -> int:
        return sum(node.stage is Stage.RETIRED for node in self.nodes)

    @property
    def under_way(self) -> int:
        return len(self.nodes) - self.gold - self.stopped - self.held - self.retired


@dataclass(frozen=True, slots=True)
class WorkOrders:
    """The orders of a site. `unseen` of its `nodes` are not discovered yet; `held` are those that an operator holds."""

    site: str
    simulated: bool
    at: datetime
    nodes: int
    unseen: int
    orders: tuple[WorkOrder, ...]
    held: tuple[NodeSummary, ...] = ()


class _LeanNodes:
    """Findings of nodes that go on, in a fraction of the memory: one that passed is shared by all nodes, and has its
    check and its limits alone.
    """

    def __init__(self) -> None:
        self._passed: dict[tuple[str, str], Finding] = {}

    def of(self, node: NodeState) -> NodeState:
        """Return the node without its inventory and the details of what passed; a stopped one as it is."""
        if node.stopped_at is not None:
            return node
        reports = {
            step: replace(report, findings=tuple(map(self._finding, report.findings)))
            for step, report in node.reports.items()
        }
        return replace(node, reports=reports, inventory=None)

    def _finding(self, finding: Finding) -> Finding:
        if finding.verdict is not Verdict.PASS:
            return finding
        key = (finding.check, finding.limits)
        if key not in self._passed:
            self._passed[key] = replace(passed(finding.check, ""), limits=finding.limits)
        return self._passed[key]


def fleet_report(context: SiteContext, *, whole: bool = False) -> FleetReport:
    """Return all that a report of the fleet shows.

    whole  keep each finding of each node, for a document that has them all: gigabytes for tens of thousands of nodes
    """
    with collector_paused():
        kept: list[NodeState] = []
        pairs = _PairDigests()
        lean = _LeanNodes()

        def read() -> Iterator[NodeState]:
            for node in context.journal.each_state():
                pairs.add(node)
                kept.append(node if whole else lean.of(node))
                yield node

        measured = figures(read())
        nodes = tuple(sorted(kept, key=lambda node: natural_key(node.name)))
        stopped = [node for node in nodes if node.stopped_at is not None and node.stage is not Stage.RETIRED]
        stopped.sort(key=lambda node: (walking(node.location), natural_key(node.name)))
        limits = _limits_by_sku(context)
        shown = stopped[:MOST_CASES]
        by_node = _events(context, {node.id for node in shown})
        evidence = _evidence(context, shown)
        return FleetReport(
            overview=_overview(context),
            nodes=nodes,
            cases=tuple(case(node, evidence, limits.get(node.sku), by_node.get(node.id, ())) for node in shown),
            omitted=len(stopped) - len(shown),
            figures=measured,
            pairs=_pairs(context, nodes, pairs, limits),
        )


def node_case(context: SiteContext, node: NodeState) -> NodeCase:
    """Return one node's findings with limits and evidence, and its time line."""
    events = context.journal.history(Stream.NODE, node.id)
    return case(node, _evidence(context, [node]), _limits_by_sku(context).get(node.sku), events)


def site_work_orders(
    context: SiteContext,
    fleet: Sequence[NodeSummary] | None = None,
    stopped: Iterable[NodeState] | None = None,
    planned: Planned | None = None,
) -> WorkOrders:
    """Return the work orders; only nodes that are stopped are read whole.

    fleet, stopped  the nodes, and the states of those that are stopped, of a caller that knows them; else they are read
    planned         the planned cables, likewise
    """
    now, settings = CLOCK.now(), context.site.settings
    nodes = [node for node in fleet or context.nodes() if node.stage is not Stage.RETIRED]
    if stopped is None:
        stopped = [context.journal.state(node.id) for node in nodes if node.stopped_at is not None]
    going_on = [node for node in nodes if node.stopped_at is None]
    if planned is None:
        planned = planned_cables(context) if len(going_on) < len(nodes) else {}
    return WorkOrders(
        site=settings.name,
        simulated=settings.simulated,
        at=now,
        nodes=len(nodes),
        unseen=sum(node.stage is Stage.SEEN for node in going_on),
        orders=work_orders(stopped, now, _proven_faults(context), planned),
        held=tuple(node for node in going_on if node.held(now)),
    )


def for_work_orders(node: NodeState) -> NodeState:
    """Return the node without the findings that admit it: all that work orders need, in a fraction of the memory."""
    reports = {
        step: replace(report, findings=tuple(one for one in report.findings if not one.verdict.admits))
        for step, report in node.reports.items()
    }
    return replace(node, reports=reports)


def _proven_faults(context: SiteContext) -> list[tuple[FabricFault, tuple[Digest, ...]]]:
    """Return the open faults of the fabric, each with its evidence."""
    events = list(context.journal.latest(Stream.FABRIC, Kind.FABRIC_FAULT_SEEN))
    proofs = {event.subject: event.evidence for event in events}
    return [(fault, proofs[fault.subject]) for fault in open_faults(events)]


def _overview(context: SiteContext) -> ReportOverview:
    settings = context.site.settings
    return ReportOverview(
        site=settings.name,
        simulated=settings.simulated,
        now=CLOCK.now(),
        unproven=notices(context.site),
        faults=context.faults(),
        offenders=known_offenders(context),
        expiry=expiry_of(context.site),
        links=_last_judgement(context),
        rmas=tuple(one for one in known_rmas(context) if one.open),
        plans=tuple(unfinished_notes(context)),
    )


def _last_judgement(context: SiteContext) -> tuple[datetime, FabricLinksJudged] | None:
    events = list(context.journal.latest(Stream.FABRIC, Kind.FABRIC_LINKS_JUDGED))
    found = [(event.at, event.payload) for event in events if isinstance(event.payload, FabricLinksJudged)]
    return found[-1] if found else None


def _limits_by_sku(context: SiteContext) -> Mapping[str, Limits]:
    from clusterctl.edges.site import contents  # here, not above: it imports all checks

    return {sku.name: contents.limits(context.site, sku.limits) for sku in context.site.skus}


def _evidence(context: SiteContext, nodes: Iterable[NodeState]) -> Mapping[Digest, Evidence]:
    """Return the evidence of the findings that stop these nodes."""
    return context.evidence(digest for node in nodes for finding in node.findings for digest in finding.evidence)


def _events(context: SiteContext, wanted: set[NodeId]) -> Mapping[NodeId, Sequence[Event]]:
    by_node: dict[NodeId, list[Event]] = defaultdict(list)
    for event in context.journal.histories(wanted, SHOWN):
        by_node[NodeId(event.subject)].append(event)
    return by_node


@dataclass
class _PairDigests:
    """Evidence of the pairs by node: of all while they are few, else of those with a load that did not pass."""

    _all: dict[str, list[Digest]] = field(default_factory=dict)
    _bad: dict[str, list[Digest]] = field(default_factory=dict)
    _nodes: int = 0

    def add(self, node: NodeState) -> None:
        self._nodes += 1
        if self.whole:
            self._all[node.name] = list(_of_pairs(node, whole=True))
        if bad := list(_of_pairs(node, whole=False)):
            self._bad[node.name] = bad

    @property
    def whole(self) -> bool:
        return self._nodes <= WHOLE_MATRIX

    def digests(self, nodes: Sequence[NodeState]) -> list[Digest]:
        """Return the digests in the order of the nodes, each once."""
        found = self._all if self.whole else self._bad
        return list(dict.fromkeys(digest for node in nodes for digest in found.get(node.name, ())))


def _pairs(
    context: SiteContext, nodes: Sequence[NodeState], pairs: _PairDigests, limits: Mapping[str, Limits]
) -> PairReadings:
    digests = pairs.digests(nodes)
    names = {node.address: node.name for node in nodes if node.address}
    read = context.evidence(digests[:MOST_PAIRS]).values()
    found = tuple(figure for item in read if (figure := pair_figure(item, names)) is not None)
    floors = [limits[node.sku]["ib_write_bw_min"].value for node in nodes if node.sku in limits]
    return PairReadings(found, max(floors, default=0.0), max(0, len(digests) - MOST_PAIRS), pairs.whole)


def _of_pairs(node: NodeState, *, whole: bool) -> Iterable[Digest]:
    for report in node.reports.values():
        for finding in report.findings:
            if finding.check == IB_WRITE_BW and (whole or not finding.verdict.admits):
                yield from finding.evidence


def planned_cables(context: SiteContext) -> Planned:
    """Return the planned cables by either end; none where the site has no wiring plan yet."""
    from clusterctl.edges.site import contents  # likewise

    site = context.site
    plans = [contents.wiring_plan(site)] if Path(site.path(site.settings.fabric.plan)).exists() else []
    ethernet = contents.ethernet_plan(site)
    plans += [ethernet] if ethernet is not None else []
    return {end: cable for plan in plans for cable in plan.cables for end in cable.ends}
