"""The fewest plug moves that repair a component, on the fewest devices and the nearest ports; and the action line."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product

from clusterctl.cabling.actions import Action, MovePlug, PlugIn, TakeOut
from clusterctl.cabling.difference import Component
from clusterctl.cabling.explain.explanation import FaultKind
from clusterctl.cabling.labels import PlanLabels, listed, ranges
from clusterctl.fleet.fabric.wiring import PortName

Pair = tuple[PortName, PortName]


@dataclass(frozen=True, slots=True)
class CablingRepair:
    """`moves` take a plug from the first port to the second; `add` and `remove` are whole cables.

    `tie`: the same effort at the other ends of the cables works as well; `other` are those moves.
    """

    moves: tuple[Pair, ...] = ()
    add: Pair | None = None
    remove: Pair | None = None
    tie: bool = False
    other: tuple[Pair, ...] = ()

    @property
    def devices(self) -> frozenset[str]:
        """The devices where something is done."""
        pairs = (*self.moves, *((self.add,) if self.add else ()), *((self.remove,) if self.remove else ()))
        return frozenset(port.device for pair in pairs for port in pair)

    @property
    def steps(self) -> tuple[Action, ...]:
        """The repair as single actions."""
        return (
            *(TakeOut(*pair) for pair in (self.remove,) if pair),
            *(MovePlug(*pair) for pair in self.moves),
            *(PlugIn(*pair) for pair in (self.add,) if pair),
        )


def repair(component: Component) -> CablingRepair:
    """Return the cheaper of the two repairs of a component; of two equal ones the first by name, marked as a tie."""
    return _ranked(component)[0]


_Pair = tuple[frozenset[str], frozenset[str]]
"""The devices of both repairs of a component, the better first."""
_EXACT = 10
"""Up to so many pairs that share devices, every choice is tried."""


def repairs(components: Iterable[Component], visited: Iterable[str] = ()) -> list[CablingRepair]:
    """Return one repair for each component, so that all of them together need the fewest devices to visit.

    The number of moved plugs is the same at both ends of a component. `visited`: devices that need a visit anyway.
    Among many components that share devices, the result may need more devices than the best choice.
    """
    options = [_ranked(component) for component in components]
    chosen = [ranked[0] for ranked in options]
    fixed = set(visited).union(*(ranked[0].devices for ranked in options if len(ranked) == 1))
    pairs = _pairs(options, fixed)
    for cluster in _clusters(pairs):
        for pair in _second_choices(cluster):
            for number in pairs[pair]:
                chosen[number] = options[number][1]
    visits = Counter(device for one in chosen for device in one.devices) + Counter(fixed)
    return [_without_detour(one, visits) for one in chosen]


def _pairs(options: Sequence[list[CablingRepair]], fixed: set[str]) -> Mapping[_Pair, list[int]]:
    """Return the indices of the options with two repairs, by the devices that these visit apart from `fixed`."""
    pairs: dict[_Pair, list[int]] = defaultdict(list)
    for number, ranked in enumerate(options):
        if len(ranked) > 1:
            pairs[ranked[0].devices - fixed, ranked[1].devices - fixed].append(number)
    return pairs


def _without_detour(one: CablingRepair, visits: Counter[str]) -> CablingRepair:
    """Return the repair, without the other one where that needs more devices to visit among all repairs."""
    if not one.tie:
        return one
    after = visits - Counter(one.devices)
    after.update({port.device for move in one.other for port in move})
    return one if len(after) <= len(visits) else replace(one, tie=False, other=())


def _clusters(pairs: Iterable[_Pair]) -> list[list[_Pair]]:
    """Return the pairs in groups that share devices."""
    clusters: list[tuple[set[str], list[_Pair]]] = []
    for pair in pairs:
        devices = set(pair[0] | pair[1])
        apart = [cluster for cluster in clusters if cluster[0].isdisjoint(devices)]
        together = [cluster for cluster in clusters if not cluster[0].isdisjoint(devices)]
        joined = devices.union(*(cluster[0] for cluster in together))
        clusters = [*apart, (joined, [pair, *(one for cluster in together for one in cluster[1])])]
    return [cluster[1] for cluster in clusters]


def _second_choices(cluster: list[_Pair]) -> list[_Pair]:
    """Return the pairs of which the second repair is taken."""
    return _best_choice(cluster) if len(cluster) <= _EXACT else _exchanged(cluster)


def _best_choice(cluster: list[_Pair]) -> list[_Pair]:
    """Return the same, by trying every choice."""
    best = min(
        product((0, 1), repeat=len(cluster)),
        key=lambda choice: (
            len(frozenset().union(*(pair[side] for pair, side in zip(cluster, choice, strict=True)))),
            sum(choice),
        ),
    )
    return [pair for pair, side in zip(cluster, best, strict=True) if side]


def _exchanged(cluster: list[_Pair]) -> list[_Pair]:
    """Return the same step by step, from three starts: the better repairs, and those of the most or fewest devices."""
    shared = Counter(devices for pair in cluster for devices in pair)
    starts = [dict.fromkeys(cluster, 0)]
    starts += [{pair: int(sign * shared[pair[1]] > sign * shared[pair[0]]) for pair in cluster} for sign in (1, -1)]
    ends = [_improved(cluster, side) for side in starts]
    best = min(ends, key=lambda side: len({device for pair in cluster for device in pair[side[pair]]}))
    return [pair for pair in cluster if best[pair]]


def _improved(cluster: list[_Pair], start: Mapping[_Pair, int]) -> dict[_Pair, int]:
    """Return the choice after all changes that save devices: all pairs that share the devices of one repair."""
    side = dict(start)
    visits = Counter(device for pair in cluster for device in pair[side[pair]])
    changed = True
    while changed:
        changed = False
        targets = Counter(pair[1 - side[pair]] for pair in cluster)
        for target, _ in sorted(targets.items(), key=lambda item: (-item[1], sorted(item[0]))):
            members = [pair for pair in cluster if pair[1 - side[pair]] == target]
            after = _visits_after(visits, [(pair[side[pair]], target) for pair in members])
            if len(after) < len(+visits):
                visits, changed = after, True
                side |= {pair: 1 - side[pair] for pair in members}
    return side


def _visits_after(visits: Counter[str], changes: Iterable[tuple[Iterable[str], Iterable[str]]]) -> Counter[str]:
    """Return how often each device is visited once other devices stand in for some; without those not visited."""
    after = visits.copy()
    for before, instead in changes:
        after.subtract(before)
        after.update(instead)
    return +after


def _ranked(component: Component) -> list[CablingRepair]:
    """Return both repairs, the better first; equally good ones know each other."""
    options = _cycle(component.ports) if component.cycle else _path(component.ports, component.starts_planned)
    ranked = sorted(options, key=lambda option: (_effort(option), option.moves))
    if len(ranked) > 1 and ranked[0].moves and _effort(ranked[1]) == _effort(ranked[0]):
        first, second = ranked
        return [replace(first, tie=True, other=second.moves), replace(second, tie=True, other=first.moves)]
    return ranked


def _cycle(ports: tuple[PortName, ...]) -> list[CablingRepair]:
    """Return both repairs of planned u0–v0, observed v0–u1, planned u1–v1 …: move the plugs on side u, or on side v."""
    u, v = ports[0::2], ports[1::2]
    return [
        CablingRepair(moves=tuple((u[(i + 1) % len(u)], u[i]) for i in range(len(u)))),
        CablingRepair(moves=tuple((v[i], v[(i + 1) % len(v)]) for i in range(len(v)))),
    ]


def _path(ports: tuple[PortName, ...], starts_planned: bool) -> list[CablingRepair]:
    cables = len(ports) - 1
    if cables == 1:
        pair = (ports[0], ports[1])
        return [CablingRepair(add=pair) if starts_planned else CablingRepair(remove=pair)]
    if cables % 2 == 0:
        way = ports if starts_planned else ports[::-1]
        return [CablingRepair(moves=_back(way))]
    if starts_planned:
        return [
            CablingRepair(moves=_back(ports[:-1]), add=(ports[-2], ports[-1])),
            CablingRepair(moves=_back(ports[:0:-1]), add=(ports[1], ports[0])),
        ]
    return [
        CablingRepair(moves=_back(ports[-2::-1]), remove=(ports[-2], ports[-1])),
        CablingRepair(moves=_back(ports[1:]), remove=(ports[0], ports[1])),
    ]


def _back(ports: tuple[PortName, ...]) -> tuple[Pair, ...]:
    """Return the moves along planned a–b, observed b–c, planned c–d, observed d–e: plug c to a, plug e to c."""
    kept = ports[0::2]
    return tuple((kept[i + 1], kept[i]) for i in range(len(kept) - 1))


def _effort(option: CablingRepair) -> tuple[int, int]:
    """Return the number of devices to visit, and the distance of the ports on them."""
    numbers: dict[str, list[int]] = defaultdict(list)
    for move in option.moves:
        for port in move:
            numbers[port.device].append(int(re.sub(r"\D", "", port.port) or 0))
    return len(numbers), sum(max(n) - min(n) for n in numbers.values())


_SHIFT = 4
"""From this number on, plugs with the same offset are one instruction."""


def action_line(kind: FaultKind, component: Component, best: CablingRepair, labels: PlanLabels) -> str:
    """Return the one line for the technician."""
    if kind is FaultKind.MISSING_LINK:
        return _plug_in(component, labels)
    if kind is FaultKind.UNKNOWN_DEVICE and component.missing:
        return f"{_all_of(best, labels)} — or, if the part was replaced, enter its new name in the plan"
    return _all_of(best, labels)


def _plug_in(component: Component, labels: PlanLabels) -> str:
    cable = component.missing[0]
    host = next((e for e in (cable.source, cable.destination) if e.device in labels.plan.hosts), cable.destination)
    far = cable.source if host == cable.destination else cable.destination
    return (
        f"{labels.at(host.device)}{labels.port(host)}: plug in {labels.cable(cable)} to {labels.port(far)}, "
        "or reseat it; replace it if the link stays down"
    )


def _all_of(best: CablingRepair, labels: PlanLabels) -> str:
    """Return what to swap or move, what to plug in, what to take out."""
    parts = [_swap_or_moves(best.moves, labels)] if best.moves else []
    if best.add:
        parts.append(f"plug in a cable {labels.port(best.add[0])} – {labels.port(best.add[1])}")
    if best.remove:
        first, second = best.remove
        place = "" if parts else labels.at(first.device)
        parts.append(f"{place}take out the cable {labels.seen(first)} – {labels.seen(second)}")
    if best.tie:
        parts.append(f"or, with the same effort: {_swap_or_moves(best.other, labels)}")
    return "; ".join(parts)


def _swap_or_moves(moves: tuple[Pair, ...], labels: PlanLabels) -> str:
    ports = {port for move in moves for port in move}
    first, *others = {port.device for port in ports}
    swap = len(moves) == len(ports) == 2
    if swap and others:
        places = [f"{labels.at(port.device)}{labels.port(port)}" for port in sorted(ports)]
        return f"swap the plugs in {listed(places)}"
    if others:
        return ", ".join(
            f"move the plug in {labels.seen(a)} to {labels.at(b.device)}{labels.port(b)}" for a, b in moves
        )
    here = f"swap the cables in {labels.ports_in(ports)}" if swap else _moves_on_one(moves, labels)
    return f"{labels.at(first)}{first}: {here}"


def _moves_on_one(moves: tuple[Pair, ...], labels: PlanLabels) -> str:
    moved = (f"move the plug in {labels.here(a)} to {labels.here(b)}" for a, b in moves)
    return _shift(moves) or ", ".join(moved)


def _shift(moves: tuple[Pair, ...]) -> str:
    """Return the instruction for many plugs of one device with one offset; empty where offsets differ."""
    ports = [port for move in moves for port in move]
    if len(moves) < _SHIFT or not _on_one_board(ports):
        return ""
    steps = [(source.number, target.number) for source, target in moves]
    offsets = {target - source for source, target in steps}
    if len(offsets) != 1:
        return ""
    offset = offsets.pop()
    sources, targets = map(ranges, zip(*steps, strict=True))
    board = f"{ports[0].board} " if ports[0].board else ""
    return f"move each plug in {board}ports {sources} {_way(offset)}, to ports {targets}"


def _on_one_board(ports: Sequence[PortName]) -> bool:
    return all(port.on_switch for port in ports) and len({port.board for port in ports}) == 1


def _way(offset: int) -> str:
    return f"{abs(offset)} port{'s' if abs(offset) > 1 else ''} {'up' if offset > 0 else 'down'}"
