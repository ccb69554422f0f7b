"""Explanations for misplaced, missing and extra cables, and the rails that they belong to."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from clusterctl.cabling.difference import Component
from clusterctl.cabling.explain.bundles import join_bundles
from clusterctl.cabling.explain.explanation import CablingExplanation, FaultKind
from clusterctl.cabling.explain.repair import CablingRepair, action_line, repairs
from clusterctl.cabling.labels import PlanLabels, shortened
from clusterctl.fleet.fabric.wiring import Cabled, PortName, WiringPlan


@dataclass(frozen=True, slots=True)
class Rails:
    """Rails by the plan's column `rail`, else by adapter name.

    on     switch → rails of its planned adapters; one in a rail-optimized fabric
    of     adapter → its rail
    named  whether the plan names rails itself, so that an adapter's name proves nothing
    """

    on: Mapping[str, frozenset[str]]
    of: Mapping[PortName, str]
    named: bool

    def wrong(self, cable: Cabled) -> bool:
        """Return whether a cable connects an adapter with known rail to a switch of other rails."""
        first, second = tuple(cable.ends) if len(cable.ends) == 2 else (*cable.ends, *cable.ends)
        for switch, adapter in ((first, second), (second, first)):
            planned, rail = self.on.get(switch.device), self._rail(adapter)
            if planned and rail and rail not in planned:
                return True
        return False

    def _rail(self, adapter: PortName) -> str:
        if adapter in self.of:
            return self.of[adapter]
        return "" if self.named or adapter.on_switch else adapter.port


def rails_of(plan: WiringPlan) -> Rails:
    """Return the rails of a plan."""
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


def explain_components(
    found: Iterable[Component], labels: PlanLabels, rails: Rails | None = None, visited: Iterable[str] = ()
) -> list[CablingExplanation]:
    """Return cause and repair of each component, those of a bundle of cables as one.

    All repairs together visit the fewest devices; `visited` are devices that need a visit anyway.
    """
    found = list(found)
    chosen = repairs(found, visited)
    return join_bundles([_explain(*pair, labels, rails) for pair in zip(found, chosen, strict=True)], labels)


def _explain(component: Component, best: CablingRepair, labels: PlanLabels, rails: Rails | None) -> CablingExplanation:
    kind = _kind(component, best, rails, labels.devices)
    nodes = tuple(sorted({p.device for p in component.ports if p.device in labels.plan.hosts}))
    devices = tuple(dict.fromkeys(port.device for port in (*_worked_on(best), *component.ports)))
    return CablingExplanation(
        kind=kind,
        cause=_cause(kind, component, labels),
        action=action_line(kind, component, best, labels),
        nodes=nodes,
        ports=tuple(sorted(component.ports)),
        rack=labels.rack(*devices),
        links=max(len(component.missing), len(component.extra)),
        steps=best.steps,
        tie=best.tie,
    )


def _kind(component: Component, best: CablingRepair, rails: Rails | None, known: frozenset[str]) -> FaultKind:
    if any(port.device not in known for port in component.ports):
        return FaultKind.UNKNOWN_DEVICE
    if not best.moves:
        return FaultKind.MISSING_LINK if component.missing else FaultKind.EXTRA_LINK
    if rails and any(rails.wrong(cable) for cable in component.extra):
        return FaultKind.WRONG_RAIL
    return FaultKind.SWAPPED if component.cycle else FaultKind.MOVED


def _cause(kind: FaultKind, component: Component, labels: PlanLabels) -> str:
    missing = [f"{cable.source} – {cable.destination}" for cable in component.missing]
    found = [" – ".join(labels.seen(end) for end in sorted(cable.ends)) for cable in component.extra]
    if kind is FaultKind.MISSING_LINK:
        return f"the planned link {missing[0]} is not up: its cable is missing or broken, or a port is down"
    if kind is FaultKind.EXTRA_LINK:
        return f"the cable {found[0]} is not in the plan"
    head = {
        FaultKind.SWAPPED: "cables are swapped" if len(found) == 2 else f"{len(found)} cables are rotated",
        FaultKind.WRONG_RAIL: "cables are on the wrong rail" if len(found) > 1 else "a cable is on the wrong rail",
        FaultKind.UNKNOWN_DEVICE: "a device outside the plan is cabled",
    }.get(kind, "cables are in the wrong ports" if len(found) > 1 else "a cable is in the wrong port")
    planned = f"the plan has {shortened(missing)}" if missing else "the plan has no cable there"
    return f"{head}: found {shortened(found)}, {planned}"


def _worked_on(best: CablingRepair) -> tuple[PortName, ...]:
    added = best.add or best.remove or ()
    return (*(port for move in best.moves for port in move), *added)
