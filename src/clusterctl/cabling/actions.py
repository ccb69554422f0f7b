"""What a technician does, as data: plugs moved, cables put in or taken out, devices brought back, names corrected."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from clusterctl.fleet.fabric.wiring import PortName
from clusterctl.fleet.node import Guid

Ends = frozenset[PortName]
"""Both ends of a cable; a single one where a cable leads from a port back to itself."""


@dataclass(frozen=True, slots=True)
class MovePlug:
    """The plug in `source` belongs in `target`. Several go together: take out all, then plug."""

    source: PortName
    target: PortName


@dataclass(frozen=True, slots=True)
class PlugIn:
    """A cable between two ports: a new one, or the plug of one that is loose."""

    a: PortName
    b: PortName


@dataclass(frozen=True, slots=True)
class TakeOut:
    """The cable between two ports."""

    a: PortName
    b: PortName


@dataclass(frozen=True, slots=True)
class Restore:
    """Bring absent devices back: power first, then whatever of `cables` is unplugged. Counts as one action."""

    devices: tuple[str, ...]
    cables: tuple[Ends, ...]


@dataclass(frozen=True, slots=True)
class Reseat:
    """What both cables of a twin-port cage share, so that both are up again. Counts as one action."""

    cables: tuple[Ends, ...]


@dataclass(frozen=True, slots=True)
class Rename:
    """The devices that call themselves `seen` are the planned `planned`: no cable is touched.

    `planned` is a switch or host (`port` empty), or one adapter of a host.
    """

    seen: str
    planned: PortName
    guids: tuple[Guid, ...]


Action = MovePlug | PlugIn | TakeOut | Restore | Reseat | Rename


def is_physical(action: Action) -> bool:
    """Whether somebody has to walk there: all but a correction of names."""
    return not isinstance(action, Rename)


@dataclass(slots=True)
class _Bench:
    """Cables by the ports that they are plugged into; a cable with one plug out has one port."""

    cables: dict[int, set[PortName]]
    at: dict[PortName, int]

    def pull(self, port: PortName) -> int | None:
        cable = self.at.pop(port, None)
        if cable is not None:
            self.cables[cable].discard(port)
        return cable

    def plug(self, cable: int, port: PortName) -> None:
        self.pull(port)
        self.cables.setdefault(cable, set()).add(port)
        self.at[port] = cable


def carry_out(actions: Iterable[Action], cables: Iterable[Ends]) -> frozenset[Ends]:
    """What is plugged in at both ends once all is done, names corrected: the state that a re-check should see.

    `cables` are named as the actions name them, that is after `Rename`s; ports that do not exist are not looked for.
    """
    given = dict(enumerate(set(ends) for ends in cables))
    bench = _Bench(given, {port: number for number, ends in given.items() for port in ends})
    done = tuple(actions)
    for out in (action for action in done if isinstance(action, TakeOut)):
        bench.pull(out.a)
        bench.pull(out.b)
    moves = [action for action in done if isinstance(action, MovePlug)]
    pulled = [(bench.pull(move.source), move.target) for move in moves]
    for cable, target in pulled:
        if cable is not None:
            bench.plug(cable, target)
    for pair in _put_in(done):
        _connect(bench, pair)
    return frozenset(frozenset(ends) for ends in bench.cables.values() if len(ends) > 1)


def _put_in(actions: Iterable[Action]) -> list[Ends]:
    pairs = []
    for action in actions:
        if isinstance(action, PlugIn):
            pairs.append(frozenset((action.a, action.b)))
        elif isinstance(action, Restore | Reseat):
            pairs += action.cables
    return pairs


def _connect(bench: _Bench, ends: Ends) -> None:
    for port in ends:
        bench.pull(port)
    new = max(bench.cables, default=-1) + 1
    for port in ends:
        bench.plug(new, port)
