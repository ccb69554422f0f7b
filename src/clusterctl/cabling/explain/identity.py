"""Devices that stand in another's place: their neighbours know better than their names.

A correction of a name counts as one action, so that it is believed where it makes more cables right than it costs:
what is told is the cheaper reading of the same fabric.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from clusterctl.cabling.names import ObservedCable
from clusterctl.fleet.fabric.wiring import PortName

_ROUNDS = 8
"""Corrected names make better witnesses for the next round; each round that changes something explains more cables."""

_Neighbours = Mapping[str, list[tuple[str, PortName]]]
_Peers = Mapping[PortName, PortName]


@dataclass(frozen=True, slots=True)
class Kinds:
    """Which observed devices are `adapters` (or hosts with several), and which planned ones `hosts`."""

    adapters: frozenset[str]
    hosts: frozenset[str]

    def fit(self, device: str, planned: str) -> bool:
        return (device in self.adapters) == (planned in self.hosts)


@dataclass(frozen=True, slots=True)
class _Crowd:
    """`neighbours` of each device that has a wrong cable: (own port, far end); what each present device is `called`;
    the planned `peers`, and the `known` planned names.
    """

    neighbours: _Neighbours
    called: dict[str, str]
    peers: _Peers
    known: set[str]
    kinds: Kinds

    def right(self, names: Mapping[str, str]) -> int:
        """How many cables of the devices in `names` would be right under these names, those among them counted once."""
        count = 0
        for device, name in names.items():
            for port, far in self.neighbours[device]:
                inside = far.device in names
                other = PortName(names[far.device] if inside else self.called[far.device], far.port)
                count += (self.peers.get(PortName(name, port)) == other) * (1 if inside else 2)
        return count // 2


@dataclass(frozen=True, slots=True)
class _Votes:
    """Of one device: planned device → cables that would be right port by port, or at least on the right device."""

    exact: Counter[str]
    near: Counter[str]

    def best(self) -> str:
        return min(self.near, key=lambda name: (-self.exact[name], -self.near[name], name), default="")


def vote(cables: Iterable[ObservedCable], peers: _Peers, kinds: Kinds, claimed: Mapping[str, str]) -> dict[str, str]:
    """Observed device → the planned device whose place it stands in, where that is another one.

    `peers` leads from each planned port to the other end; `claimed` are the names that several devices give, by what
    they are called instead: the last one without a better name gets it. No two devices end up under one name.
    """
    cables = list(cables)
    present = {end.device for cable in cables for end in cable.ends}
    suspects = {end.device for cable in cables if not _right(cable, peers) for end in cable.ends}
    neighbours: dict[str, list[tuple[str, PortName]]] = {device: [] for device in suspects}
    for cable in cables:
        ends = tuple(cable.ends)
        for near, far in (ends, ends[::-1]):
            if near.device in suspects:
                neighbours[near.device].append((near.port, far))
    crowd = _Crowd(neighbours, {device: device for device in present}, peers, {port.device for port in peers}, kinds)
    for _ in range(_ROUNDS):
        changes = _round(crowd) or _last_claimants(crowd, claimed)
        if not changes:
            break
        crowd.called.update(changes)
    return {device: name for device, name in crowd.called.items() if device != name}


def _last_claimants(crowd: _Crowd, claimed: Mapping[str, str]) -> dict[str, str]:
    nameless = [device for device in claimed if crowd.called.get(device) == device]
    count = Counter(claimed[device] for device in nameless)
    taken = set(crowd.called.values())
    return {d: claimed[d] for d in nameless if count[claimed[d]] == 1 and claimed[d] not in taken}


def _right(cable: ObservedCable, peers: _Peers) -> bool:
    a, b = cable.ends
    return peers.get(a) == b


def _round(crowd: _Crowd) -> dict[str, str]:
    votes = {device: _votes(device, ends, crowd) for device, ends in crowd.neighbours.items()}
    wishes: dict[str, str] = {}
    wanted: set[str] = set()
    for device in sorted(votes, key=lambda d: (-_gain(votes[d], crowd.called[d]), d)):
        name = votes[device].best()
        if name not in wanted and name != crowd.called[device] and _may_wish(votes[device], device, name, crowd):
            wishes[device] = name
            wanted.add(name)
    holders = {name: device for device, name in crowd.called.items()}
    changes: dict[str, str] = {}
    for chain in _chains(wishes, crowd.called, holders):
        changes |= _settled(chain, wishes, votes, crowd)
    return changes


def _votes(device: str, ends: list[tuple[str, PortName]], crowd: _Crowd) -> _Votes:
    exact: Counter[str] = Counter()
    near: Counter[str] = Counter()
    for port, far in ends:
        name = crowd.called[far.device]
        planned = crowd.peers.get(far if name == far.device else PortName(name, far.port))
        if planned is not None and crowd.kinds.fit(device, planned.device):
            near[planned.device] += 1
            exact[planned.device] += planned.port == port
    return _Votes(exact, near)


def _gain(votes: _Votes, called: str) -> int:
    return votes.exact[votes.best()] - votes.exact[called]


def _may_wish(votes: _Votes, device: str, name: str, crowd: _Crowd) -> bool:
    """A planned name yields to more right cables; an unplanned one also to most neighbours' word."""
    if crowd.called[device] in crowd.known:
        return votes.exact[name] > votes.exact[crowd.called[device]]
    return bool(votes.exact[name]) or (votes.near[name] >= 2 and 2 * votes.near[name] > votes.near.total())


def _chains(wishes: Mapping[str, str], called: Mapping[str, str], holders: Mapping[str, str]) -> list[list[str]]:
    """Devices in the order in which each takes the next one's name; a ring begins anywhere."""
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


def _settled(chain: list[str], wishes: Mapping[str, str], votes: Mapping[str, _Votes], crowd: _Crowd) -> dict[str, str]:
    """The chain's new names, where its last one is free or can be freed, and all of it is worth its price."""
    new = {device: wishes[device] for device in chain}
    last = chain[-1]
    evicted = next((device for device, name in crowd.called.items() if name == wishes[last]), None)
    if evicted is not None and evicted not in new:
        if evicted not in votes or votes[evicted].exact[wishes[last]] >= votes[last].exact[wishes[last]]:
            return {}
        freed = crowd.called[chain[0]]
        new[evicted] = freed if freed in crowd.known and freed not in wishes.values() else f"{evicted} (another)"
    nameless = any(crowd.called[device] not in crowd.known for device in chain)
    gain = crowd.right(new) - crowd.right({device: crowd.called[device] for device in new})
    return new if gain > len(new) or (nameless and evicted is None and gain >= 0) else {}
