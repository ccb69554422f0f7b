"""Misplaced, missing and surplus cables, in words."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping

from clusterctl.cabling.components import Component
from clusterctl.cabling.explain import Explanation, Kind
from clusterctl.cabling.moves import Pair, Repair, repair
from clusterctl.cabling.names import ObservedCable
from clusterctl.cabling.wording import Words, listed
from clusterctl.fleet.wiring import PortName, WiringPlan


def rails_of(plan: WiringPlan) -> Mapping[str, frozenset[str]]:
    """Switch → names of the adapters planned on it: one where the fabric is rail-optimised."""
    rails: dict[str, set[str]] = defaultdict(set)
    for cable in plan.cables:
        for near, far in ((cable.source, cable.destination), (cable.destination, cable.source)):
            if far.device in plan.hosts and near.device not in plan.hosts:
                rails[near.device].add(far.port)
    return {switch: frozenset(names) for switch, names in rails.items()}


def explain_component(component: Component, words: Words, rails: Mapping[str, frozenset[str]]) -> Explanation:
    """One cause and the repair for one chain of differences; `rails` as `rails_of` gives them."""
    best = repair(component)
    kind = _kind(component, best, rails, words.devices)
    nodes = tuple(sorted({p.device for p in component.ports if p.device in words.plan.hosts}))
    devices = tuple(dict.fromkeys(port.device for port in (*_worked_on(best), *component.ports)))
    return Explanation(
        kind=kind,
        cause=_cause(kind, component, words),
        action=_action(kind, component, best, words),
        nodes=nodes,
        ports=tuple(sorted(component.ports)),
        rack=words.rack(*devices),
        plug_moves=len(best.moves),
        tie=best.tie,
    )


def _kind(component: Component, best: Repair, rails: Mapping[str, frozenset[str]], known: frozenset[str]) -> Kind:
    if any(port.device not in known for port in component.ports):
        return Kind.UNKNOWN_DEVICE
    if not best.moves:
        return Kind.MISSING_LINK if component.missing else Kind.EXTRA_LINK
    if any(_on_wrong_rail(cable, rails) for cable in component.extra):
        return Kind.WRONG_RAIL
    return Kind.SWAPPED if component.cycle else Kind.MOVED


def _on_wrong_rail(cable: ObservedCable, rails: Mapping[str, frozenset[str]]) -> bool:
    for switch, adapter in (tuple(cable.ends), tuple(cable.ends)[::-1]):
        planned = rails.get(switch.device, frozenset())
        if not adapter.port.isdigit() and planned and adapter.port not in planned:
            return True
    return False


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


def _action(kind: Kind, component: Component, best: Repair, words: Words) -> str:
    if kind is Kind.MISSING_LINK:
        cable = component.missing[0]
        host = next((e for e in (cable.source, cable.destination) if e.device in words.plan.hosts), cable.destination)
        far = cable.source if host == cable.destination else cable.destination
        return (
            f"{words.at(host.device)}{words.port(host)}: plug in {words.cable(cable)} to {words.port(far)}, "
            "or reseat it; replace it if the link stays down"
        )
    if kind is Kind.UNKNOWN_DEVICE and component.missing:
        return f"{_moves(best, words)} — or, if the part was replaced, tell the plan its new name"
    return _moves(best, words)


def _moves(best: Repair, words: Words) -> str:
    """One line: what to swap or move, what to plug in, what to take out."""
    parts = [_swap_or_moves(best.moves, words)] if best.moves else []
    if best.add:
        parts.append(f"plug in a cable {words.port(best.add[0])} – {words.port(best.add[1])}")
    if best.remove:
        parts.append(f"take out the cable {words.seen(best.remove[0])} – {words.seen(best.remove[1])}")
    if best.tie:
        parts.append(f"a tie: as well, {_swap_or_moves(best.other, words)}")
    return "; ".join(parts)


def _swap_or_moves(moves: tuple[Pair, ...], words: Words) -> str:
    ports = {port for move in moves for port in move}
    devices = sorted({port.device for port in ports})
    if len(moves) == 2 and len(ports) == 2:
        if len(devices) == 1:
            device = devices[0]
            if all(port.port.isdigit() for port in ports):
                return f"{words.at(device)}{words.ports_of(device, ports)}: swap"
            return f"{words.at(device)}{device}: swap the cables in {words.ports_of('', ports).strip()}"
        first, second = sorted(ports)
        places = [f"{words.at(port.device)}{words.port(port)}" for port in (first, second)]
        return f"swap the plugs in {listed(places)}"
    place = f"{words.at(devices[0])}{devices[0]}" if len(devices) == 1 else ""
    steps = [f"move the plug in {words.seen(a)} to {words.port(b)}" for a, b in moves]
    return f"{place}: {', '.join(steps)}" if place else ", ".join(steps)


def _worked_on(best: Repair) -> tuple[PortName, ...]:
    added = best.add or best.remove or ()
    return (*(port for move in best.moves for port in move), *added)
