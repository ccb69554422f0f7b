"""Repair actions as data: move plugs, add or remove cables, restore devices, correct names."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Literal

from clusterctl.fleet.fabric.wiring import PortName
from clusterctl.fleet.node import Guid

Ends = frozenset[PortName]
"""Both ends of a cable; one port where a cable connects a port with itself."""


@dataclass(frozen=True, slots=True)
class MovePlug:
    """Move the plug in `source` to `target`. Several belong together: unplug all, then plug."""

    source: PortName
    target: PortName

    @property
    def visited(self) -> frozenset[str]:
        """The devices where it is done."""
        return frozenset((self.source.device, self.target.device))


@dataclass(frozen=True, slots=True)
class PlugIn:
    """Connect two ports: with a new cable, or with a loose one. `action` distinguishes it from a `TakeOut` in JSON."""

    a: PortName
    b: PortName
    action: Literal["plug in"] = field(default="plug in", kw_only=True)

    @property
    def visited(self) -> frozenset[str]:
        """The devices where it is done."""
        return frozenset((self.a.device, self.b.device))


@dataclass(frozen=True, slots=True)
class TakeOut:
    """Remove the cable between two ports."""

    a: PortName
    b: PortName
    action: Literal["take out"] = field(default="take out", kw_only=True)

    @property
    def visited(self) -> frozenset[str]:
        """The devices where it is done."""
        return frozenset((self.a.device, self.b.device))


@dataclass(frozen=True, slots=True)
class Restore:
    """Restore absent devices: power first, then the unplugged of `cables`. Counts as one action.

    `causes` are the absent devices that hide the others; none: all of `devices`.
    """

    devices: tuple[str, ...]
    cables: tuple[Ends, ...]
    causes: tuple[str, ...] = ()

    @property
    def visited(self) -> frozenset[str]:
        """The devices where it is done."""
        return frozenset(self.causes or self.devices)


@dataclass(frozen=True, slots=True)
class Reseat:
    """Reseat the shared parts of both cables of a twin-port cage. Counts as one action."""

    cables: tuple[Ends, ...]

    @property
    def visited(self) -> frozenset[str]:
        """The devices where it is done."""
        return frozenset(port.device for ends in self.cables for port in ends)


@dataclass(frozen=True, slots=True)
class Rename:
    """Rename the devices with the name `seen` to `planned`; no cable is touched.

    `planned` is a switch or host (`port` empty), or one adapter of a host.
    """

    seen: str
    planned: PortName
    guids: tuple[Guid, ...]

    @property
    def visited(self) -> frozenset[str]:
        """No device: names are corrected from afar."""
        return frozenset()


Action = MovePlug | PlugIn | TakeOut | Restore | Reseat | Rename


def is_physical(action: Action) -> bool:
    """Return whether the action needs work in the rack: all except a correction of names."""
    return not isinstance(action, Rename)


@dataclass(slots=True)
class _Plugged:
    """Cables by their ports; a cable with one loose plug has one port."""

    cables: dict[int, set[PortName]]
    at: dict[PortName, int]

    def pull(self, port: PortName) -> int | None:
        """Unplug a port, and return its cable."""
        cable = self.at.pop(port, None)
        if cable is not None:
            self.cables[cable].discard(port)
        return cable

    def plug(self, cable: int, port: PortName) -> None:
        """Plug a cable into a port."""
        self.pull(port)
        self.cables.setdefault(cable, set()).add(port)
        self.at[port] = cable

    def move(self, moves: Iterable[MovePlug]) -> None:
        """Unplug all, then plug each into its target: a target may be the source of another move."""
        pulled = [(self.pull(move.source), move.target) for move in moves]
        for cable, target in pulled:
            if cable is not None:
                self.plug(cable, target)


def carry_out(actions: Iterable[Action], cables: Iterable[Ends]) -> frozenset[Ends]:
    """Return the cables with both plugs in after all actions: the state that a re-check must find.

    `cables` have the names of the actions, that is after `Rename`s.
    """
    given = dict(enumerate(map(set, cables)))
    plugged = _Plugged(given, {port: number for number, ends in given.items() for port in ends})
    done = tuple(actions)
    for action in done:
        if isinstance(action, TakeOut):
            plugged.pull(action.a)
            plugged.pull(action.b)
    plugged.move([action for action in done if isinstance(action, MovePlug)])
    for pair in _put_in(done):
        _connect(plugged, pair)
    return frozenset(frozenset(ends) for ends in plugged.cables.values() if len(ends) > 1)


def _put_in(actions: Iterable[Action]) -> list[Ends]:
    pairs = []
    for action in actions:
        if isinstance(action, PlugIn):
            pairs.append(frozenset((action.a, action.b)))
        elif isinstance(action, Restore | Reseat):
            pairs += action.cables
    return pairs


def _connect(plugged: _Plugged, ends: Ends) -> None:
    for port in ends:
        plugged.pull(port)
    new = max(plugged.cables, default=-1) + 1
    for port in ends:
        plugged.plug(new, port)
