"""Misplaced, missing and surplus cables, in words."""

from __future__ import annotations

from clusterctl.cabling.components import Component
from clusterctl.cabling.explain import Explanation, Kind
from clusterctl.cabling.instructions import action_line
from clusterctl.cabling.moves import Repair, repair
from clusterctl.cabling.rails import Rails
from clusterctl.cabling.wording import Words, listed
from clusterctl.fleet.wiring import PortName


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
