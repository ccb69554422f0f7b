"""Which rail an adapter is on, and which a leaf carries: by the plan's column `rail`, else by the adapters' names."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass

from clusterctl.fleet.wiring import Cabled, PortName, WiringPlan


@dataclass(frozen=True, slots=True)
class Rails:
    """`on`: switch → rails of the adapters planned on it, one where the fabric is rail-optimised; `of`: adapter → its
    rail; `named`: whether the plan has names of its own for rails, so that an adapter's name tells nothing.
    """

    on: Mapping[str, frozenset[str]]
    of: Mapping[PortName, str]
    named: bool

    def wrong(self, cable: Cabled) -> bool:
        """Whether it leads an adapter, whose rail is known, to a switch that carries others."""
        first, second = tuple(cable.ends) if len(cable.ends) == 2 else (*cable.ends, *cable.ends)
        for switch, adapter in ((first, second), (second, first)):
            planned, rail = self.on.get(switch.device), self._rail(adapter)
            if planned and rail and rail not in planned:
                return True
        return False

    def _rail(self, adapter: PortName) -> str:
        if adapter in self.of:
            return self.of[adapter]
        return "" if self.named or adapter.port.isdigit() else adapter.port


def rails_of(plan: WiringPlan) -> Rails:
    on: dict[str, set[str]] = defaultdict(set)
    of: dict[PortName, str] = {}
    for cable in plan.cables:
        for near, far in ((cable.source, cable.destination), (cable.destination, cable.source)):
            if far.device in plan.hosts and near.device not in plan.hosts:
                rail = cable.rail or far.port
                on[near.device].add(rail)
                of[far] = rail
    named = any(cable.rail for cable in plan.cables)
    return Rails({switch: frozenset(rails) for switch, rails in on.items()}, of, named)
