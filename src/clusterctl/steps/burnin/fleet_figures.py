"""What nodes of one SKU have measured lately: a node is held against all of them, wherever they were burned in."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Protocol

from clusterctl.fleet.event import Event, Kind
from clusterctl.fleet.finding import Finding
from clusterctl.fleet.node import NodeId
from clusterctl.ports import Clock
from clusterctl.steps.burnin.node_under_test import NodeUnderTest
from clusterctl_burnin import figures
from clusterctl_burnin.fleet_stats import Sample, compare

RECENT = timedelta(days=28)
"""Older figures are not compared with: firmware, rooms and seasons change."""


class FiguresJournal(Protocol):
    """What is needed of the journal."""

    def latest(self, stream: str, kind: Kind | None = None) -> Iterator[Event]: ...


@dataclass(frozen=True, slots=True)
class FleetFigures:
    """A guest's figures go into the journal with its report, and are read from there for all others."""

    journal: FiguresJournal
    clock: Clock

    def findings(self, guests: Sequence[NodeUnderTest]) -> Mapping[NodeId, tuple[Finding, ...]]:
        """Which of the guests (of one SKU) stand out from their fleet, by the metrics that their limits name.

        With too few nodes to know what is usual nothing is found, and nothing said: no check has passed by that.
        """
        wanted = guests[0].kind.limits.compared if guests else frozenset()
        if not wanted:
            return {}
        here = {guest.node.id for guest in guests}
        mine = [sample for guest in guests for sample in guest.figures]
        others = self._others(guests[0].kind.sku.name, here)
        compared = compare(sample for sample in (*mine, *others) if sample.metric.name in wanted)
        return {NodeId(node): found for node, found in compared.findings.items() if node in here}

    def _others(self, population: str, here: set[NodeId]) -> Iterator[Sample]:
        since = self.clock.now() - RECENT
        for event in self.journal.latest("node", Kind.FIGURES_MEASURED):
            if event.at >= since and event.data["population"] == population and event.subject not in here:
                yield from figures.from_data(event.subject, population, event.data["figures"])
