"""Nodes that a resumed run may measure its own with although nobody named them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from clusterctl.edges.clock import CLOCK
from clusterctl.fleet.event import Kind
from clusterctl.fleet.node import NodeId, Stage, Step
from clusterctl.fleet.state import NodeSummary
from clusterctl.ports import Journal, Pool
from clusterctl.steps.burnin.partners import ENOUGH


def idle_mates(journal: Journal, pool: Pool, nodes: Sequence[NodeSummary], way: Sequence[Step]) -> list[NodeSummary]:
    """Gold nodes of a run that died before it published them: no job can be on them.

    Without them the last node of that run would stand alone at its burn-in, with nobody to measure it with. At most
    `ENOUGH` of each SKU, and only where a node is on its way to its burn-in.
    """
    if Step.BURNIN not in way or not any(node.next_step in way for node in nodes):
        return []
    found: Counter[str] = Counter()
    mates = []
    for node in _idle(journal, pool):
        if found[node.sku] < ENOUGH:
            found[node.sku] += 1
            mates.append(node)
    return mates


def _idle(journal: Journal, pool: Pool) -> Iterator[NodeSummary]:
    """Two witnesses: the published pool lacks the node, and the run that made it gold never came to its end."""
    now = CLOCK.now()
    gold = [node for node in journal.summaries() if node.in_pool(now)]
    unpublished = pool.lacks(node.name for node in gold)
    return (node for node in gold if node.name in unpublished and _run_died(journal, node.id))


def _run_died(journal: Journal, node: NodeId) -> bool:
    runs = [
        event.run
        for event in journal.history("node", node)
        if event.kind is Kind.STAGE_ADVANCED and event.data["to"] == Stage.GOLD.value
    ]
    if not runs:
        return False
    return Kind.RUN_FINISHED not in {event.kind for event in journal.history("run", runs[-1])}
