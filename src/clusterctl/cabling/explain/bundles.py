"""Bundles of cables that were shifted or exchanged as a whole: one mistake, so one explanation.

Each cable of a bundle is a component of its own. Neighbouring ports with the same moves belong together; so do all
exchanges on one device between the same two far devices whose ports are neighbours.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import replace

from clusterctl.cabling.actions import MovePlug
from clusterctl.cabling.explain.explanation import Explanation, FaultKind
from clusterctl.cabling.labels import PlanLabels, listed, ranges, shortened
from clusterctl.fleet.fabric.wiring import PortName

_KINDS = (FaultKind.SWAPPED, FaultKind.MOVED, FaultKind.WRONG_RAIL)
_Side = tuple[str, str]
"""A device and a board of it; empty where it has none."""
_Way = tuple[_Side, _Side, int]
"""From where to where a plug moves, and by how many ports."""


def join_bundles(found: list[Explanation], labels: PlanLabels) -> list[Explanation]:
    """Return the explanations, with those of one bundle joined."""
    patterns: dict[frozenset[_Way], list[Explanation]] = defaultdict(list)
    for one in found:
        ways = frozenset(map(_way, _moves(one)))
        if 0 < len(ways) <= 2:
            patterns[ways].append(one)
    joined: dict[int, Explanation] = {}
    done: set[int] = set()
    for ways, alike in patterns.items():
        for run in _runs(alike, ways):
            joined[id(run[0])] = _join(run, labels)
            done |= {id(one) for one in run}
    for exchanged in _between_two(one for one in found if id(one) not in done):
        joined[id(exchanged[0])] = _join(exchanged, labels)
        done |= {id(one) for one in exchanged}
    return [joined.get(id(one), one) for one in found if id(one) in joined or id(one) not in done]


def _moves(one: Explanation) -> list[MovePlug]:
    """Return the moves of an explanation; none where it needs anything else than moves between ports of switches."""
    moves = [step for step in one.steps if isinstance(step, MovePlug)]
    plain = one.kind in _KINDS and len(moves) == len(one.steps)
    return moves if plain and all(port.on_switch for move in moves for port in (move.source, move.target)) else []


def _side(port: PortName) -> _Side:
    return port.device, port.board


def _way(move: MovePlug) -> _Way:
    return _side(move.source), _side(move.target), move.target.number - move.source.number


def _start(one: Explanation) -> int:
    """Return the lowest port on the first device."""
    ports = [port for move in _moves(one) for port in (move.source, move.target)]
    first = min(map(_side, ports))
    return min(port.number for port in ports if _side(port) == first)


def _runs(alike: list[Explanation], ways: frozenset[_Way]) -> list[list[Explanation]]:
    """Return explanations whose first ports are neighbours, in runs of at least two.

    On one device a run is at most as long as its moves: longer ones would meet their own targets.
    """
    source, target, offset = next(iter(ways))
    longest = abs(offset) if source == target else len(alike)
    runs: list[list[Explanation]] = []
    for one in sorted(alike, key=_start):
        if runs and _start(one) == _start(runs[-1][-1]) + 1 and len(runs[-1]) < longest:
            runs[-1].append(one)
        else:
            runs.append([one])
    return [run for run in runs if len(run) > 1]


def _between_two(found: Iterable[Explanation]) -> list[list[Explanation]]:
    """Return exchanges on one device between the same two far devices, at least two, in neighbouring ports."""
    groups: dict[tuple[_Side, frozenset[str]], list[Explanation]] = defaultdict(list)
    for one in found:
        moves = _moves(one) if one.kind is FaultKind.SWAPPED else []
        here = {_side(port) for move in moves for port in (move.source, move.target)}
        if len(here) == 1:
            (side,) = here
            far = frozenset(port.device for port in one.ports if port.device != side[0])
            if len(far) == 2:
                groups[side, far].append(one)
    return [group for group in groups.values() if len(group) > 1 and _close(group)]


def _close(group: list[Explanation]) -> bool:
    numbers = {port.number for one in group for move in _moves(one) for port in (move.source, move.target)}
    return max(numbers) - min(numbers) < 2 * len(numbers)


def _join(run: list[Explanation], labels: PlanLabels) -> Explanation:
    first = run[0]
    moves = sorted(
        (move for one in run for move in _moves(one)), key=lambda move: (_side(move.source), move.source.number)
    )
    sources, targets = {move.source for move in moves}, {move.target for move in moves}
    here = sorted({port.device for port in sources | targets})
    ports = {port for one in run for port in one.ports}
    far = shortened(sorted({port.device for port in ports} - set(here)), 4)
    head = f"{len(moves)} cables of a bundle at {listed(here)}, to {far}, are "
    if sources == targets:
        what = f"exchanged: {_places(sources)}"
    else:
        what = f"shifted: found in {_places(sources)}, the plan has {_places(targets)}"
    return replace(
        first,
        kind=next((one.kind for one in run if one.kind is FaultKind.WRONG_RAIL), first.kind),
        cause=head + what,
        action=f"{labels.at(here[0])}{listed(here)}: {_instruction(moves)}",
        nodes=tuple(sorted({node for one in run for node in one.nodes})),
        ports=tuple(sorted(ports)),
        links=sum(one.links for one in run),
        steps=tuple(moves),
        tie=any(one.tie for one in run),
    )


def _places(ports: Iterable[PortName]) -> str:
    """Return ports by device and board: `leaf-1 ports 33–36 and leaf-2 ports 1–4`."""
    sides: dict[_Side, list[int]] = defaultdict(list)
    for port in ports:
        sides[_side(port)].append(port.number)
    return listed(f"{' '.join(filter(None, side))} ports {ranges(sides[side])}" for side in sorted(sides))


def _instruction(moves: list[MovePlug]) -> str:
    """Return what to do with the plugs: by ranges where source and target keep their order."""
    ways: dict[_Way, list[MovePlug]] = defaultdict(list)
    for move in moves:
        ways[_way(move)].append(move)
    if len(ways) > 2:
        pairs = ", ".join(f"{move.source.number} → {move.target.number}" for move in moves)
        return f"unplug all of {_places(move.source for move in moves)}, then move each plug: {pairs}"
    parts = [
        f"{_places(move.source for move in part)} to {_places(move.target for move in part)}" for part in ways.values()
    ]
    sources = {move.source for move in moves}
    first = "unplug all, then " if any(move.target in sources for move in moves) else ""
    return f"{first}move the plugs from {listed(parts)}, in the same order"
