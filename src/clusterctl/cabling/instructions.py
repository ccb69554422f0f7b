"""The one line that a technician gets for one chain of differences."""

from __future__ import annotations

from clusterctl.cabling.components import Component
from clusterctl.cabling.explain import Kind
from clusterctl.cabling.moves import Pair, Repair
from clusterctl.cabling.wording import Words, listed, ranges

_SHIFT = 4
"""As many plugs that are all off by the same number of ports are said in one go."""


def action_line(kind: Kind, component: Component, best: Repair, words: Words) -> str:
    if kind is Kind.MISSING_LINK:
        return _plug_in(component, words)
    if kind is Kind.UNKNOWN_DEVICE and component.missing:
        return f"{_all_of(best, words)} — or, if the part was replaced, tell the plan its new name"
    return _all_of(best, words)


def _plug_in(component: Component, words: Words) -> str:
    cable = component.missing[0]
    host = next((e for e in (cable.source, cable.destination) if e.device in words.plan.hosts), cable.destination)
    far = cable.source if host == cable.destination else cable.destination
    return (
        f"{words.at(host.device)}{words.port(host)}: plug in {words.cable(cable)} to {words.port(far)}, "
        "or reseat it; replace it if the link stays down"
    )


def _all_of(best: Repair, words: Words) -> str:
    """What to swap or move, what to plug in, what to take out."""
    parts = [_swap_or_moves(best.moves, words)] if best.moves else []
    if best.add:
        parts.append(f"plug in a cable {words.port(best.add[0])} – {words.port(best.add[1])}")
    if best.remove:
        first, second = best.remove
        place = "" if parts else words.at(first.device)
        parts.append(f"{place}take out the cable {words.seen(first)} – {words.seen(second)}")
    if best.tie:
        parts.append(f"a tie: as well, {_swap_or_moves(best.other, words)}")
    return "; ".join(parts)


def _swap_or_moves(moves: tuple[Pair, ...], words: Words) -> str:
    ports = {port for move in moves for port in move}
    devices = {port.device for port in ports}
    swap = len(moves) == len(ports) == 2
    if len(devices) > 1:
        if swap:
            places = [f"{words.at(port.device)}{words.port(port)}" for port in sorted(ports)]
            return f"swap the plugs in {listed(places)}"
        return ", ".join(f"move the plug in {words.seen(a)} to {words.at(b.device)}{words.port(b)}" for a, b in moves)
    (device,) = devices
    place = f"{words.at(device)}{device}: "
    if swap:
        return f"{place}swap the cables in {words.ports_in(ports)}"
    return place + (
        _shift(moves) or ", ".join(f"move the plug in {words.here(a)} to {words.here(b)}" for a, b in moves)
    )


def _shift(moves: tuple[Pair, ...]) -> str:
    """Many plugs of one device, each as far off as the next; empty where they are not."""
    if len(moves) < _SHIFT or not all(port.port.isdigit() for move in moves for port in move):
        return ""
    steps = [(int(source.port), int(target.port)) for source, target in moves]
    offsets = {target - source for source, target in steps}
    if len(offsets) != 1:
        return ""
    offset = offsets.pop()
    way = f"{abs(offset)} port{'s' if abs(offset) > 1 else ''} {'up' if offset > 0 else 'down'}"
    sources, targets = ranges(source for source, _ in steps), ranges(target for _, target in steps)
    return f"move each plug in ports {sources} {way}, to ports {targets}"
