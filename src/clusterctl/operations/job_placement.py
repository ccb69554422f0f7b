"""Free gold nodes of the site, and what is known of each: where a supervised run goes."""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import chain

from clusterctl.fleet.event import Kind
from clusterctl.fleet.finding import Finding, Verdict
from clusterctl.fleet.payloads.jobs import JobAttributed
from clusterctl.fleet.payloads.node import NodeQuarantined
from clusterctl.fleet.state import NodeState
from clusterctl.jobs.placement import PlacementFacts
from clusterctl.operations.adapters import Adapters
from clusterctl.operations.compose import StepFactory
from clusterctl.operations.context import SiteContext
from clusterctl.operations.job_history import LOOKED_BACK
from clusterctl.operations.operation import Control, current_time
from clusterctl.operations.site_facts import require_scheduler
from clusterctl.ports import Deadline
from clusterctl.ports.scheduler import RESERVED, Use
from clusterctl_burnin.recordings.pair_figures import PairFigure, pair_figure

MOST_PAIRS = 20_000


def free_nodes(
    context: SiteContext, adapters: Adapters, avoided: Collection[str], deadline: Deadline, own: Collection[str] = ()
) -> tuple[PlacementFacts, ...]:
    """Return the gold nodes that are idle now, or in the `own` reservation of a run, without those to avoid."""
    seen = require_scheduler(context.site, adapters.scheduler).look(deadline).value
    now = current_time()
    gold = {node.name for node in context.journal.summaries() if node.in_pool(now)}
    free = {name for name, one in seen.items() if one.use is Use.IDLE or (name in own and one.state == RESERVED)}
    names = sorted(gold & free - set(avoided))
    states = context.named(names)
    blamed, offences = _history(context)
    pairs = _pairs(context, states)
    leaves = StepFactory(context, adapters, Control().cancelled, read_only=True).leaves()
    return tuple(
        PlacementFacts(
            name=state.name,
            blamed=blamed[state.name],
            offences=offences[state.id],
            warnings=_warnings(state),
            pairs=pairs.get(state.name),
            leaf=leaves.get(state.name, ""),
        )
        for state in states
    )


def _history(context: SiteContext) -> tuple[Counter[str], Counter[str]]:
    """Return how many jobs blame each host, by name, and the quarantines of each node, by id, in the last weeks."""
    blamed: Counter[str] = Counter()
    offences: Counter[str] = Counter()
    for event in context.journal.recent((Kind.JOB_ATTRIBUTED, Kind.NODE_QUARANTINED), current_time() - LOOKED_BACK):
        match event.payload:
            case JobAttributed(hosts=hosts):
                blamed.update(set(hosts))
            case NodeQuarantined(by_operator=by_operator) if not by_operator:
                offences[event.subject] += 1
            case _:
                pass
    return blamed, offences


def _warnings(state: NodeState) -> int:
    return sum(finding.verdict is Verdict.WARN for finding in _findings(state))


def _findings(state: NodeState) -> Iterator[Finding]:
    return chain.from_iterable(report.findings for report in state.reports.values())


def _pairs(context: SiteContext, states: Sequence[NodeState]) -> Mapping[str, float]:
    """Return the slowest pair of each node as a share of the median of all; unmeasured nodes are left out."""
    names = {state.address: state.name for state in states if state.address}
    of_pairs = (finding for state in states for finding in _findings(state) if finding.check == "ib_write_bw")
    digests = list(dict.fromkeys(chain.from_iterable(finding.evidence for finding in of_pairs)))
    read = context.evidence(digests[:MOST_PAIRS]).values()
    figures = [figure for item in read if (figure := pair_figure(item, names)) is not None]
    return _shares(figures)


def _shares(figures: Sequence[PairFigure]) -> Mapping[str, float]:
    usual = statistics.median(figure.value for figure in figures) if figures else 0.0
    slowest: dict[str, float] = {}
    for figure in figures:
        for name in (figure.source, figure.target):
            slowest[name] = min(slowest.get(name, figure.value), figure.value)
    return {name: value / usual for name, value in slowest.items()} if usual else {}
