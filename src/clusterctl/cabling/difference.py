"""Plan against fabric, port by port: what is right, what is only planned, what is only there."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from clusterctl.cabling.names import ObservedCable
from clusterctl.fleet.fabric.wiring import Cabled, PlannedCable, PortName, WiringPlan


@dataclass(frozen=True, slots=True)
class Difference:
    """`right` are the observed cables that the plan has; the others stand on one side only."""

    right: tuple[ObservedCable, ...]
    missing: tuple[PlannedCable, ...]
    extra: tuple[ObservedCable, ...]
    planned_ports: frozenset[PortName]
    observed_ports: frozenset[PortName]


def compare(plan: WiringPlan, cables: Iterable[ObservedCable]) -> Difference:
    observed = {cable.ends: cable for cable in cables}
    planned = {cable.ends: cable for cable in plan.cables}
    return Difference(
        right=tuple(cable for ends, cable in observed.items() if ends in planned),
        missing=tuple(cable for ends, cable in planned.items() if ends not in observed),
        extra=tuple(cable for ends, cable in observed.items() if ends not in planned),
        planned_ports=frozenset(port for ends in planned for port in ends),
        observed_ports=frozenset(port for ends in observed for port in ends),
    )


@dataclass(frozen=True, slots=True)
class Component:
    """`ports` in walking order; cable i joins ports[i] and ports[i+1] (in a cycle, the last one the first again).

    `starts_planned` tells whether cable 0 is a planned one; a cycle always starts so.
    """

    ports: tuple[PortName, ...]
    cycle: bool
    starts_planned: bool
    missing: tuple[PlannedCable, ...]
    extra: tuple[Cabled, ...]


Edges = dict[PortName, PortName]


def components(missing: Iterable[PlannedCable], extra: Iterable[Cabled]) -> Iterator[Component]:
    """Every missing and extra cable in exactly one component; in a stable order."""
    planned_by_ends = {cable.ends: cable for cable in missing}
    observed_by_ends = {cable.ends: cable for cable in extra}
    planned, observed = _edges(planned_by_ends), _edges(observed_by_ends)
    ports = sorted(planned.keys() | observed.keys())
    done: set[PortName] = set()
    loose_ends = [port for port in ports if (port in planned) != (port in observed)]
    for start in (*loose_ends, *ports):
        if start in done:
            continue
        walked, cycle = _walk(start, planned, observed)
        done.update(walked)
        pairs = [frozenset(pair) for pair in zip(walked, (*walked[1:], walked[0]), strict=True)]
        yield Component(
            ports=tuple(walked),
            cycle=cycle,
            starts_planned=start in planned,
            missing=tuple(planned_by_ends[p] for p in dict.fromkeys(pairs) if p in planned_by_ends),
            extra=tuple(observed_by_ends[p] for p in dict.fromkeys(pairs) if p in observed_by_ends),
        )


def _edges(by_ends: Iterable[frozenset[PortName]]) -> Edges:
    edges: Edges = {}
    for ends in by_ends:
        first, second = sorted(ends)
        edges[first], edges[second] = second, first
    return edges


def _walk(start: PortName, planned: Edges, observed: Edges) -> tuple[list[PortName], bool]:
    """From a loose end, or anywhere in a cycle: planned and observed cables in turn, until there is none."""
    walked = [start]
    along, other = (planned, observed) if start in planned else (observed, planned)
    while (port := along.get(walked[-1])) is not None:
        if port == start:
            return walked, True
        walked.append(port)
        along, other = other, along
    return walked, False
