"""From the journal and the site to what a report shows. Reads only; bounded, however large the fleet."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime

from clusterctl.edges.site import contents
from clusterctl.fleet.event import Event, Stream
from clusterctl.fleet.finding import Digest, Evidence
from clusterctl.fleet.natural_order import natural_key
from clusterctl.fleet.node import NodeId, Stage
from clusterctl.fleet.reporting.figures import figures
from clusterctl.fleet.reporting.work_orders import walking
from clusterctl.fleet.state import NodeState
from clusterctl.operations.context import SiteContext
from clusterctl.operations.expiry import expiry_of
from clusterctl.operations.offenders import known_offenders
from clusterctl.operations.operation import current_time
from clusterctl.operations.trust import notices
from clusterctl_burnin.limits.limit import Limits
from clusterctl_burnin.recordings.pair_figures import pair_figure
from clusterctl_burnin.suites.suite import IB_WRITE_BW
from clusterctl_cli.acceptance import Standing
from clusterctl_cli.fleet_report.case import SHOWN, Case, case
from clusterctl_cli.fleet_report.sheet import FleetSheet, Pairs, pairs

MOST_CASES = 250
"""Stopped nodes that are shown with their evidence; a page stays small enough to be mailed."""
WHOLE_MATRIX = 64
"""Up to so many nodes every pair is read; of more, those of nodes whose load did not pass."""
MOST_PAIRS = 3000
"""Pieces of evidence that are read for the pairs at most."""
_EVER = datetime(1970, 1, 1, tzinfo=UTC)


def standing_of(context: SiteContext) -> Standing:
    settings = context.site.settings
    unproven = tuple(notices(context.site))
    now, expiry = current_time(), expiry_of(context)
    return Standing(
        settings.name, settings.simulated, now, unproven, context.faults(), known_offenders(context), expiry
    )


def fleet_sheet(context: SiteContext) -> FleetSheet:
    nodes = tuple(sorted(context.journal.states(), key=lambda node: natural_key(node.name)))
    stopped = [node for node in nodes if node.stopped_at is not None and node.stage is not Stage.RETIRED]
    stopped.sort(key=lambda node: (walking(node.location), natural_key(node.name)))
    limits = limits_by_sku(context)
    shown = stopped[:MOST_CASES]
    by_node = _events(context, {node.id for node in shown})
    evidence = _evidence(context, shown)
    cases = tuple(case(node, evidence, limits.get(node.sku), by_node.get(node.id, ())) for node in shown)
    standing = standing_of(context)
    return FleetSheet(standing, nodes, cases, len(stopped) - len(shown), figures(nodes), _pairs(context, nodes, limits))


def node_case(context: SiteContext, node: NodeState) -> Case:
    events = context.journal.history(Stream.NODE, node.id)
    return case(node, _evidence(context, [node]), limits_by_sku(context).get(node.sku), events)


def limits_by_sku(context: SiteContext) -> Mapping[str, Limits]:
    return {sku.name: contents.limits(context.site, sku.limits) for sku in context.site.skus}


def _evidence(context: SiteContext, nodes: Iterable[NodeState]) -> Mapping[Digest, Evidence]:
    """What the findings rest on that keep these nodes back."""
    return context.evidence(digest for node in nodes for finding in node.findings for digest in finding.evidence)


def _events(context: SiteContext, wanted: set[NodeId]) -> Mapping[NodeId, Sequence[Event]]:
    """In one query: a thousand would take longer than the page."""
    by_node: dict[NodeId, list[Event]] = defaultdict(list)
    for event in context.journal.recent(SHOWN, _EVER) if wanted else ():
        if event.stream == "node" and event.subject in wanted:
            by_node[NodeId(event.subject)].append(event)
    return by_node


def _pairs(context: SiteContext, nodes: Sequence[NodeState], limits: Mapping[str, Limits]) -> Pairs | None:
    whole = len(nodes) <= WHOLE_MATRIX
    digests = list(dict.fromkeys(digest for node in nodes for digest in _of_pairs(node, whole=whole)))
    names = {node.address: node.name for node in nodes if node.address}
    read = context.evidence(digests[:MOST_PAIRS]).values()
    found = [figure for item in read if (figure := pair_figure(item, names)) is not None]
    floors = [limits[node.sku]["ib_write_bw_min"].value for node in nodes if node.sku in limits]
    return pairs(found, max(floors, default=0.0), max(0, len(digests) - MOST_PAIRS), whole=whole)


def _of_pairs(node: NodeState, *, whole: bool) -> Iterable[Digest]:
    for report in node.reports.values():
        for finding in report.findings:
            if finding.check == IB_WRITE_BW and (whole or not finding.verdict.admits):
                yield from finding.evidence
