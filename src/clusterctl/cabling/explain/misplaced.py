"""Which rail an adapter is on, and which a leaf carries: by the plan's column `rail`, else by the adapters' names."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass

from clusterctl.cabling.difference import Component
from clusterctl.cabling.explain.explanation import Explanation, Kind
from clusterctl.cabling.explain.repair import Repair, action_line, repair
from clusterctl.cabling.labels import Words, listed
from clusterctl.fleet.fabric.wiring import Cabled, PortName, WiringPlan


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


def explain_component(component: Component, words: Words, rails: Rails | None = None) -> Explanation:
    """One cause and the repair for one chain of differences; `rails` where there are any."""
    best = repair(component)
    kind = _kind(component, best, rails, words.devices)
    nodes = tuple(sorted({p.device for p in component.ports if p.device in words.plan.hosts}))
    devices = tuple(dict.fromkeys(port.device for port in (*_worked_on(best), *component.ports)))
    return Explanation(
        kind=kind,
        cause=_cause(kind, component, words),
        action=action_line(kind, component, best, words),
        nodes=nodes,
        ports=tuple(sorted(component.ports)),
        rack=words.rack(*devices),
        links=max(len(component.missing), len(component.extra)),
        steps=best.steps,
        tie=best.tie,
    )


def _kind(component: Component, best: Repair, rails: Rails | None, known: frozenset[str]) -> Kind:
    if any(port.device not in known for port in component.ports):
        return Kind.UNKNOWN_DEVICE
    if not best.moves:
        return Kind.MISSING_LINK if component.missing else Kind.EXTRA_LINK
    if rails and any(rails.wrong(cable) for cable in component.extra):
        return Kind.WRONG_RAIL
    return Kind.SWAPPED if component.cycle else Kind.MOVED


def _cause(kind: Kind, component: Component, words: Words) -> str:
    missing = [f"{cable.source} – {cable.destination}" for cable in component.missing]
    found = [" – ".join(words.seen(end) for end in sorted(cable.ends)) for cable in component.extra]
    if kind is Kind.MISSING_LINK:
        return f"the planned link {missing[0]} is not up: its cable is missing or dead, or a port is down"
    if kind is Kind.EXTRA_LINK:
        return f"the cable {found[0]} is not in the plan"
    head = {
        Kind.SWAPPED: "cables are swapped" if len(found) == 2 else f"{len(found)} cables are rotated",
        Kind.WRONG_RAIL: "cables are on the wrong rail" if len(found) > 1 else "a cable is on the wrong rail",
        Kind.UNKNOWN_DEVICE: "a device that the plan does not know is cabled",
    }.get(kind, "cables are in the wrong ports" if len(found) > 1 else "a cable is in the wrong port")
    planned = f"planned is {listed(missing)}" if missing else "nothing is planned there"
    return f"{head}: found {listed(found)}, {planned}"


def _worked_on(best: Repair) -> tuple[PortName, ...]:
    added = best.add or best.remove or ()
    return (*(port for move in best.moves for port in move), *added)
