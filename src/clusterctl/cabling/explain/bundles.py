"""Bundles of cables that were shifted or exchanged as a whole: one mistake, so one explanation.

Each cable of a bundle is a component of its own. Neighbouring ports with the same moves belong together. So do all
exchanges on one device between neighbouring ports of the same two far devices.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import replace

from clusterctl.cabling.actions import MovePlug
from clusterctl.cabling.explain.explanation import CablingExplanation, FaultKind
from clusterctl.cabling.labels import PlanLabels, listed, ranges, shortened
from clusterctl.fleet.fabric.wiring import PortName

_KINDS = (FaultKind.SWAPPED, FaultKind.MOVED, FaultKind.WRONG_RAIL)
_Side = tuple[str, str]
"""A device and a board of it; empty where it has none."""
_Way = tuple[_Side, _Side, int]
"""From where to where a plug moves, and by how many ports."""


def join_bundles(found: list[CablingExplanation], labels: PlanLabels) -> list[CablingExplanation]:
    """Return the explanations, with those of one bundle joined."""
    shifted = _shifted(found)
    done = {id(one) for run in shifted for one in run}
    runs = [*shifted, *_between_two(one for one in found if id(one) not in done)]
    joined = {id(run[0]): _join(run, labels) for run in runs}
    others = {id(one) for run in runs for one in run[1:]}
    return [joined.get(id(one), one) for one in found if id(one) not in others]


def _shifted(found: Iterable[CablingExplanation]) -> list[list[CablingExplanation]]:
    """Return runs of neighbouring ports with the same moves."""
    patterns: dict[frozenset[_Way], list[CablingExplanation]] = defaultdict(list)
    for one in found:
        ways = frozenset(map(_way, _moves(one)))
        if 0 < len(ways) <= 2:
            patterns[ways].append(one)
    return [run for ways, alike in patterns.items() for run in _runs(alike, ways)]


def _moves(one: CablingExplanation) -> list[MovePlug]:
    """Return the moves of an explanation; none where it needs anything else than moves between ports of switches."""
    moves = [step for step in one.steps if isinstance(step, MovePlug)]
    plain = one.kind in _KINDS and len(moves) == len(one.steps)
    return moves if plain and all(port.on_switch for move in moves for port in (move.source, move.target)) else []


def _side(port: PortName) -> _Side:
    return port.device, port.board


def _way(move: MovePlug) -> _Way:
    return _side(move.source), _side(move.target), move.target.number - move.source.number


def _sources(moves: Iterable[MovePlug]) -> set[PortName]:
    return {move.source for move in moves}


def _targets(moves: Iterable[MovePlug]) -> set[PortName]:
    return {move.target for move in moves}


def _moved(one: CablingExplanation) -> set[PortName]:
    """Return the ports that the moves of an explanation are from and to."""
    moves = _moves(one)
    return _sources(moves) | _targets(moves)


def _start(one: CablingExplanation) -> int:
    """Return the lowest port on the first device."""
    ports = _moved(one)
    first = min(map(_side, ports))
    return min(port.number for port in ports if _side(port) == first)


def _runs(alike: list[CablingExplanation], ways: frozenset[_Way]) -> list[list[CablingExplanation]]:
    """Return explanations with neighbouring first ports, in runs of at least two.

    On one device a run is at most as long as its moves: longer ones would meet their own targets.
    """
    source, target, offset = next(iter(ways))
    longest = abs(offset) if source == target else len(alike)
    runs: list[list[CablingExplanation]] = []
    for one in sorted(alike, key=_start):
        if runs and _start(one) == _start(runs[-1][-1]) + 1 and len(runs[-1]) < longest:
            runs[-1].append(one)
        else:
            runs.append([one])
    return [run for run in runs if len(run) > 1]


def _between_two(found: Iterable[CablingExplanation]) -> list[list[CablingExplanation]]:
    """Return exchanges on one device between the same two far devices, at least two, in neighbouring ports."""
    groups: dict[tuple[_Side, frozenset[str]], list[CablingExplanation]] = defaultdict(list)
    for one in found:
        exchange = _exchange(one)
        if exchange is not None:
            groups[exchange].append(one)
    return [group for group in groups.values() if len(group) > 1 and _close(group)]


def _exchange(one: CablingExplanation) -> tuple[_Side, frozenset[str]] | None:
    """Return the side of an exchange on one side, and the two far devices; None for any other explanation."""
    if one.kind is not FaultKind.SWAPPED:
        return None
    sides = set(map(_side, _moved(one)))
    far = frozenset(port.device for port in one.ports) - {device for device, _ in sides}
    return (sides.pop(), far) if len(sides) == 1 and len(far) == 2 else None


def _close(group: list[CablingExplanation]) -> bool:
    numbers = {port.number for one in group for port in _moved(one)}
    return max(numbers) - min(numbers) < 2 * len(numbers)


def _join(run: list[CablingExplanation], labels: PlanLabels) -> CablingExplanation:
    moves = sorted((move for one in run for move in _moves(one)), key=_place)
    ports = set[PortName]().union(*(one.ports for one in run))
    here = sorted({port.device for port in _sources(moves) | _targets(moves)})
    on_wrong_rail = any(one.kind is FaultKind.WRONG_RAIL for one in run)
    return replace(
        run[0],
        kind=FaultKind.WRONG_RAIL if on_wrong_rail else run[0].kind,
        cause=_cause(moves, here, ports),
        action=f"{labels.at(here[0])}{listed(here)}: {_instruction(moves)}",
        nodes=tuple(sorted(set[str]().union(*(one.nodes for one in run)))),
        ports=tuple(sorted(ports)),
        links=sum(one.links for one in run),
        steps=tuple(moves),
        tie=any(one.tie for one in run),
    )


def _place(move: MovePlug) -> tuple[_Side, int]:
    return _side(move.source), move.source.number


def _cause(moves: list[MovePlug], here: list[str], ports: Iterable[PortName]) -> str:
    far = shortened(sorted({port.device for port in ports} - set(here)), 4)
    sources, targets = _sources(moves), _targets(moves)
    what = f"shifted: found in {_places(sources)}, the plan has {_places(targets)}"
    if sources == targets:
        what = f"exchanged: {_places(sources)}"
    return f"{len(moves)} cables of a bundle at {listed(here)}, to {far}, are {what}"


def _places(ports: Iterable[PortName]) -> str:
    """Return ports by device and board: `leaf-1 ports 33–36 and leaf-2 ports 1–4`."""
    sides: dict[_Side, list[int]] = defaultdict(list)
    for port in ports:
        sides[_side(port)].append(port.number)
    return listed(f"{' '.join(filter(None, side))} ports {ranges(sides[side])}" for side in sorted(sides))


def _instruction(moves: list[MovePlug]) -> str:
    """Return the action with the plugs: by ranges where source and target keep their order."""
    ways: dict[_Way, list[MovePlug]] = defaultdict(list)
    for move in moves:
        ways[_way(move)].append(move)
    if len(ways) > 2:
        pairs = ", ".join(f"{move.source.number} → {move.target.number}" for move in moves)
        return f"unplug all of {_places(_sources(moves))}, then move each plug: {pairs}"
    parts = [f"{_places(_sources(part))} to {_places(_targets(part))}" for part in ways.values()]
    first = "unplug all, then " if _sources(moves) & _targets(moves) else ""
    return f"{first}move the plugs from {listed(parts)}, in the same order"
