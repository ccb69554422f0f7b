"""Differences between plan and fabric, and components of missing and extra cables that share ports.

Each port has at most one planned and one observed cable, so differences form paths and cycles in which planned and
observed cables alternate. A cycle of k observed cables needs k moved plugs; a path needs as many as it has observed
cables with both ends planned.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import chain

from clusterctl.cabling.names import ObservedCable
from clusterctl.fleet.fabric.wiring import Cabled, PlannedCable, PortName, WiringPlan


@dataclass(frozen=True, slots=True)
class CablingDifference:
    """`right`: observed and planned; `missing`: only planned; `extra`: only observed."""

    right: tuple[ObservedCable, ...]
    missing: tuple[PlannedCable, ...]
    extra: tuple[ObservedCable, ...]
    planned_ports: frozenset[PortName]
    observed_ports: frozenset[PortName]


def compare(plan: WiringPlan, cables: Iterable[ObservedCable]) -> CablingDifference:
    """Return the difference between plan and observed cables."""
    observed = {cable.ends: cable for cable in cables}
    planned = {cable.ends: cable for cable in plan.cables}
    return CablingDifference(
        right=tuple(cable for ends, cable in observed.items() if ends in planned),
        missing=tuple(cable for ends, cable in planned.items() if ends not in observed),
        extra=tuple(cable for ends, cable in observed.items() if ends not in planned),
        planned_ports=frozenset(chain.from_iterable(planned)),
        observed_ports=frozenset(chain.from_iterable(observed)),
    )


@dataclass(frozen=True, slots=True)
class Component:
    """`ports` in path order; cable i joins ports[i] and ports[i+1] (in a cycle the last port joins the first).

    `starts_planned`: whether cable 0 is planned; a cycle always starts so.
    """

    ports: tuple[PortName, ...]
    cycle: bool
    starts_planned: bool
    missing: tuple[PlannedCable, ...]
    extra: tuple[Cabled, ...]


Edges = dict[PortName, PortName]


def components(missing: Iterable[PlannedCable], extra: Iterable[Cabled]) -> Iterator[Component]:
    """Yield components that hold every missing and extra cable exactly once; in a stable order."""
    planned_by_ends = {cable.ends: cable for cable in missing}
    observed_by_ends = {cable.ends: cable for cable in extra}
    planned, observed = _edges(planned_by_ends), _edges(observed_by_ends)
    ports = sorted(planned.keys() | observed.keys())
    done: set[PortName] = set()
    loose_ends = sorted(planned.keys() ^ observed.keys())
    for start in (*loose_ends, *ports):
        if start in done:
            continue
        walked, cycle = _walk(start, planned, observed)
        done.update(walked)
        pairs = dict.fromkeys(map(frozenset, zip(walked, (*walked[1:], walked[0]), strict=True)))
        yield Component(
            ports=tuple(walked),
            cycle=cycle,
            starts_planned=start in planned,
            missing=tuple(planned_by_ends[pair] for pair in pairs if pair in planned_by_ends),
            extra=tuple(observed_by_ends[pair] for pair in pairs if pair in observed_by_ends),
        )


def _edges(by_ends: Iterable[frozenset[PortName]]) -> Edges:
    edges: Edges = {}
    for ends in by_ends:
        first, second = sorted(ends)
        edges[first], edges[second] = second, first
    return edges


def _walk(start: PortName, planned: Edges, observed: Edges) -> tuple[list[PortName], bool]:
    """Follow planned and observed cables in turn; return the ports, and whether they form a cycle."""
    walked = [start]
    along, other = (planned, observed) if start in planned else (observed, planned)
    while (port := along.get(walked[-1])) is not None:
        if port == start:
            return walked, True
        walked.append(port)
        along, other = other, along
    return walked, False
