"""Devices in another device's place: their neighbours prove more than their names.

A correction of a name counts as one action; it is accepted where it makes more cables right than it costs, so the
result is the cheaper explanation of the same fabric.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from clusterctl.cabling.names import ObservedCable
from clusterctl.fleet.fabric.wiring import PortName

_ROUNDS = 8
"""Rounds at most. Corrected names improve the next round; each round that changes a name explains more cables."""

_Neighbours = Mapping[str, list[tuple[str, PortName]]]
_Peers = Mapping[PortName, PortName]


@dataclass(frozen=True, slots=True)
class Kinds:
    """Observed devices that are `adapters` (or hosts with several), and planned devices that are `hosts`."""

    adapters: frozenset[str]
    hosts: frozenset[str]

    def fit(self, device: str, planned: str) -> bool:
        """Return whether both are of the same kind."""
        return (device in self.adapters) == (planned in self.hosts)


@dataclass(frozen=True, slots=True)
class _Devices:
    """`neighbours` of each device with a wrong cable: (own port, far end); current name (`called`) of each present
    device; the planned `peers`; the `known` planned names.
    """

    neighbours: _Neighbours
    called: dict[str, str]
    peers: _Peers
    known: set[str]
    kinds: Kinds

    def right(self, names: Mapping[str, str]) -> int:
        """Return the number of right cables of the devices in `names` under these names; inner cables count once."""
        count = 0
        for device, name in names.items():
            for port, far in self.neighbours[device]:
                inside = far.device in names
                other = PortName(names[far.device] if inside else self.called[far.device], far.port)
                count += (self.peers.get(PortName(name, port)) == other) * (1 if inside else 2)
        return count // 2


@dataclass(frozen=True, slots=True)
class _Votes:
    """Votes for a device by planned device: cables right to the port (`exact`), or on the right device (`near`)."""

    exact: Counter[str]
    near: Counter[str]

    def best(self) -> str:
        """Return the planned device with most votes; empty without any."""
        return min(self.near, key=lambda name: (-self.exact[name], -self.near[name], name), default="")


def vote(cables: Iterable[ObservedCable], peers: _Peers, kinds: Kinds, claimed: Mapping[str, str]) -> dict[str, str]:
    """Return the planned device that an observed device replaces, where that differs from its name.

    `peers`: the other end of each planned port. `claimed`: names that several devices have, by replacement name; the
    last device without a better name gets it. No two devices get one name.
    """
    cables = list(cables)
    called = {end.device: end.device for cable in cables for end in cable.ends}
    devices = _Devices(_neighbours(cables, peers), called, peers, {port.device for port in peers}, kinds)
    for _ in range(_ROUNDS):
        changes = _round(devices) or _last_claimants(devices, claimed)
        if not changes:
            break
        devices.called.update(changes)
    return {device: name for device, name in devices.called.items() if device != name}


def _neighbours(cables: list[ObservedCable], peers: _Peers) -> dict[str, list[tuple[str, PortName]]]:
    """Return the ports, with the far ends of their cables, of each device that has a cable which is not as planned."""
    suspects = {end.device for cable in cables if not _right(cable, peers) for end in cable.ends}
    neighbours: dict[str, list[tuple[str, PortName]]] = {device: [] for device in suspects}
    for cable in cables:
        ends = tuple(cable.ends)
        for near, far in (ends, ends[::-1]):
            if near.device in suspects:
                neighbours[near.device].append((near.port, far))
    return neighbours


def _last_claimants(devices: _Devices, claimed: Mapping[str, str]) -> dict[str, str]:
    nameless = [device for device in claimed if devices.called.get(device) == device]
    count = Counter(claimed[device] for device in nameless)
    taken = set(devices.called.values())
    return {d: claimed[d] for d in nameless if count[claimed[d]] == 1 and claimed[d] not in taken}


def _right(cable: ObservedCable, peers: _Peers) -> bool:
    a, b = cable.ends
    return peers.get(a) == b


def _round(devices: _Devices) -> dict[str, str]:
    votes = {device: _votes(device, ends, devices) for device, ends in devices.neighbours.items()}
    wishes: dict[str, str] = {}
    wanted: set[str] = set()
    for device in sorted(votes, key=lambda d: (-_gain(votes[d], devices.called[d]), d)):
        name = votes[device].best()
        if name not in wanted and name != devices.called[device] and _may_wish(votes[device], device, name, devices):
            wishes[device] = name
            wanted.add(name)
    holders = {name: device for device, name in devices.called.items()}
    changes: dict[str, str] = {}
    for chain in _chains(wishes, devices.called, holders):
        changes |= _accepted(chain, wishes, votes, devices)
    return changes


def _votes(device: str, ends: list[tuple[str, PortName]], devices: _Devices) -> _Votes:
    exact: Counter[str] = Counter()
    near: Counter[str] = Counter()
    for port, far in ends:
        name = devices.called[far.device]
        planned = devices.peers.get(far if name == far.device else PortName(name, far.port))
        if planned is not None and devices.kinds.fit(device, planned.device):
            near[planned.device] += 1
            exact[planned.device] += planned.port == port
    return _Votes(exact, near)


def _gain(votes: _Votes, called: str) -> int:
    return votes.exact[votes.best()] - votes.exact[called]


def _may_wish(votes: _Votes, device: str, name: str, devices: _Devices) -> bool:
    """Return whether a device may take a name: with more right cables; an unplanned name also by most neighbours."""
    if devices.called[device] in devices.known:
        return votes.exact[name] > votes.exact[devices.called[device]]
    return bool(votes.exact[name]) or (votes.near[name] >= 2 and 2 * votes.near[name] > votes.near.total())


def _chains(wishes: Mapping[str, str], called: Mapping[str, str], holders: Mapping[str, str]) -> list[list[str]]:
    """Return chains in which each device takes the name of the next one; a cycle begins anywhere."""
    wanted = {called[device] for device in wishes} & set(wishes.values())
    heads = [device for device in wishes if called[device] not in wanted]
    chains, done = [], set[str]()
    for start in (*heads, *wishes):
        chain: list[str] = []
        device: str | None = start
        while device is not None and device in wishes and device not in done:
            done.add(device)
            chain.append(device)
            device = holders.get(wishes[device])
        if chain:
            chains.append(chain)
    return chains


def _accepted(
    chain: list[str], wishes: Mapping[str, str], votes: Mapping[str, _Votes], devices: _Devices
) -> dict[str, str]:
    """Return the chain's new names where the last one is free or can be freed and the gain exceeds the cost."""
    new = {device: wishes[device] for device in chain}
    last = chain[-1]
    evicted = next((device for device, name in devices.called.items() if name == wishes[last]), None)
    if evicted is not None and evicted not in new:
        if evicted not in votes or votes[evicted].exact[wishes[last]] >= votes[last].exact[wishes[last]]:
            return {}
        new[evicted] = _freed(devices.called[chain[0]], wishes, devices) or f"{evicted} (another)"
    nameless = any(devices.called[device] not in devices.known for device in chain)
    gain = devices.right(new) - devices.right({device: devices.called[device] for device in new})
    return new if _is_worth(gain, len(new), free=nameless and evicted is None) else {}


def _freed(name: str, wishes: Mapping[str, str], devices: _Devices) -> str:
    """Return the name that the chain gives up, if it is known and no device is to have it; else nothing."""
    return name if name in devices.known and name not in wishes.values() else ""


def _is_worth(gain: int, cost: int, *, free: bool) -> bool:
    """Return whether new names gain more cables than devices change their name, or cost nothing."""
    return gain > cost or (free and gain >= 0)
