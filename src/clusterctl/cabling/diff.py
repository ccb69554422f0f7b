"""Plan against fabric, port by port: what is right, what is only planned, what is only there."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from clusterctl.cabling.names import ObservedCable
from clusterctl.fleet.wiring import PlannedCable, PortName, WiringPlan


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
