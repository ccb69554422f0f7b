"""The latest figures of all nodes of one SKU: a node under test is compared with them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from itertools import chain
from typing import Protocol

from clusterctl.fleet.event import Event, Kind, Stream
from clusterctl.fleet.finding import Finding
from clusterctl.fleet.node import NodeId
from clusterctl.fleet.payloads.node import FiguresMeasured
from clusterctl.ports import Clock
from clusterctl.steps.burnin.node_under_test import NodeUnderTest
from clusterctl_burnin import figures
from clusterctl_burnin.fleet_stats import Sample, compare, shared_answers
from clusterctl_burnin.kernel_log.slot_power import SLOT_POWER

RECENT = timedelta(days=28)
"""Older figures are not compared with: firmware, rooms and seasons change."""


class FiguresJournal(Protocol):
    """What is needed of the journal."""

    def latest(self, stream: Stream, kind: Kind | None = None) -> Iterator[Event]: ...


@dataclass(frozen=True, slots=True)
class FleetFigures:
    """A node's figures go into the journal with its report, and are read from there for all others."""

    journal: FiguresJournal
    clock: Clock

    def findings(self, nodes: Sequence[NodeUnderTest]) -> Mapping[NodeId, tuple[Finding, ...]]:
        """Return the findings on nodes (of one SKU) that differ from their fleet in a metric that their limits name.

        Too few nodes to know what is usual give no finding: no check has passed by that.
        """
        metrics = nodes[0].limits.compared if nodes else frozenset()
        if not metrics:
            return {}
        here = {node.state.id for node in nodes}
        own = [sample for node in nodes for sample in node.figures]
        others = self._others(nodes[0].sku.name, here)
        compared = compare(sample for sample in (*own, *others) if sample.metric.name in metrics)
        return {NodeId(node): found for node, found in compared.findings.items() if node in here}

    def shared_slots(self, nodes: Sequence[NodeUnderTest]) -> frozenset[str]:
        """Return the adapters, as subjects, whose slots report too little power on other nodes of this SKU too."""
        here = {node.state.id for node in nodes}
        others = self._others(nodes[0].sku.name, here) if nodes else ()
        figures = chain((sample for node in nodes for sample in node.figures), others)
        return shared_answers(sample for sample in figures if sample.metric == SLOT_POWER)

    def _others(self, population: str, here: set[NodeId]) -> Iterator[Sample]:
        since = self.clock.now() - RECENT
        for event in self.journal.latest(Stream.NODE, Kind.FIGURES_MEASURED):
            match event.payload:
                case FiguresMeasured(population=measured, figures=found) if measured == population:
                    if event.at >= since and event.subject not in here:
                        yield from figures.from_payload(event.subject, population, found)
