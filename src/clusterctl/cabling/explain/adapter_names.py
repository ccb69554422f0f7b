"""Adapters with other names than the plan's (`HCA-1`, `ibp26s0` for `mlx5_0`): the cables show which is which.

Names alone never justify a move. Hosts that name their adapters alike vote together: the name that most of their cables
give to an adapter is the planned one.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field

from clusterctl.cabling.actions import Rename
from clusterctl.cabling.explain.enumeration import NameMap, Peers, orders
from clusterctl.cabling.explain.explanation import CablingExplanation, FaultKind
from clusterctl.cabling.labels import shortened
from clusterctl.cabling.names import ObservedCable
from clusterctl.fleet.fabric.topology import PortId
from clusterctl.fleet.fabric.wiring import PortName
from clusterctl.fleet.natural_order import natural_key
from clusterctl.fleet.node import Guid

_AGREEING = 3
"""Hosts that must agree before their names count as permuted: fewer may have exchanged cables."""
_OUTVOTED = 4
"""So many hosts must agree for each host whose cables give the adapter its own name: else cables are exchanged."""

_Key = tuple[frozenset[str], frozenset[str]]
"""Adapter names that a host shows, and those that the plan gives to it."""


@dataclass(slots=True)
class _Group:
    """Hosts that name their adapters alike; `votes`: own name → planned names that the cables suggest.

    `as_planned`: hosts with more cables under the planned names than under others.
    """

    hosts: set[str] = field(default_factory=set)
    as_planned: set[str] = field(default_factory=set)
    votes: dict[str, Counter[str]] = field(default_factory=lambda: defaultdict(Counter))

    def add(self, host: str, adapters: Mapping[str, PortName], peers: Peers) -> None:
        """Add a host and the far ends of its adapters: the plan's other end of a far end is the suggested name."""
        self.hosts.add(host)
        own = 0
        for name, far in adapters.items():
            suggested = peers.get(far)
            votes = self.votes[name]
            if suggested is not None and suggested.device == host:
                votes[suggested.port] += 1
                own += 1 if suggested.port == name else -1
        if own > 0:
            self.as_planned.add(host)

    def join(self, other: _Group) -> None:
        """Add the hosts of another group, and their votes."""
        self.hosts |= other.hosts
        self.as_planned |= other.as_planned
        for name, votes in other.votes.items():
            self.votes[name] += votes

    def suggested(self) -> dict[str, str]:
        """Return the planned name of each adapter that has most of the votes."""
        names = {}
        for name, votes in self.votes.items():
            best, count = max(votes.items(), key=lambda vote: vote[1], default=("", 0))
            if count * 2 > votes.total():
                names[name] = best
        return names

    def agrees(self, names: Mapping[str, str]) -> bool:
        """Return whether enough hosts vote for each changed name, and few for its own: those have exchanged cables."""
        return all(
            self.votes[name][planned] >= max(_AGREEING, _OUTVOTED * self.votes[name][name])
            for name, planned in names.items()
            if name != planned
        )


def _seen(cables: Iterable[ObservedCable], hosts: AbstractSet[str]) -> dict[str, dict[str, PortName]]:
    """Return the far end of each adapter of each host."""
    seen: dict[str, dict[str, PortName]] = defaultdict(dict)
    for cable in cables:
        ends = tuple(cable.ends)
        for near, other in (ends, ends[::-1]):
            if near.device in hosts:
                seen[near.device][near.port] = other
    return seen


def adapter_maps(
    cables: Iterable[ObservedCable], peers: Peers, hosts: Iterable[str], guids: frozenset[PortName]
) -> tuple[NameMap, ...]:
    """Return the maps of adapter names that differ from the plan. `guids`: ports with names that an inventory has."""
    planned: dict[str, set[str]] = {host: set() for host in hosts}
    for port in peers:
        if port.device in planned:
            planned[port.device].add(port.port)
    seen = _seen(cables, planned.keys())
    spelled = {host for host, adapters in seen.items() if adapters.keys() <= planned[host]}
    known = {host for host in spelled if any(PortName(host, name) in guids for name in seen[host])}
    ordered = orders({host: seen[host] for host in seen if host in spelled - known}, peers)
    done = known.union(*(found.hosts for found in ordered))
    groups: dict[_Key, _Group] = defaultdict(_Group)
    for host, adapters in seen.items():
        if host not in done:
            groups[frozenset(adapters), frozenset(planned[host])].add(host, adapters, peers)
    _join_incomplete(groups)
    maps = (_map_of(group, of_plan) for (_, of_plan), group in groups.items())
    return (*ordered, *(found for found in maps if found is not None))


def _join_incomplete(groups: dict[_Key, _Group]) -> None:
    """Join hosts that lack an adapter to the largest group that has all their names: they do not vote alone."""
    for key in sorted(groups, key=lambda key: len(key[0])):
        like = [other for other in groups if other[0] > key[0] and other[1] == key[1]]
        if like:
            groups[max(like, key=lambda other: len(groups[other].hosts))].join(groups.pop(key))


def _map_of(group: _Group, of_plan: frozenset[str]) -> NameMap | None:
    """Return the map of one group; None where its names are the plan's, or where the cables suggest none."""
    names = group.suggested()
    renamed = {names.get(name, name) for name in group.votes}  # a name without most votes stays
    if len(renamed) < len(group.votes) or all(name == planned for name, planned in names.items()):
        return None
    agreeing = group.agrees(names)
    strange = group.votes.keys() - of_plan
    if not strange and not agreeing:
        return None
    unnamed, free = sorted(strange - names.keys()), sorted(of_plan - set(names.values()))
    if len(unnamed) == len(free) == 1:
        names[unnamed[0]] = free[0]
    ordered = sorted(names, key=natural_key)
    in_order = [names[name] for name in ordered] == sorted(names.values(), key=natural_key)
    changed = {name: planned for name, planned in names.items() if name != planned}
    hosts = group.hosts if strange else group.hosts - group.as_planned
    return NameMap(tuple(sorted(hosts, key=natural_key)), changed, proven=agreeing or in_order)


def renamed_ports(names: Mapping[PortId, PortName], maps: Iterable[NameMap]) -> dict[PortId, PortName]:
    """Return the names of all ports with the maps applied."""
    by_host = {host: found.names for found in maps for host in found.hosts}
    return {
        port: PortName(name.device, by_host.get(name.device, {}).get(name.port, name.port))
        for port, name in names.items()
    }


def names_differ(
    maps: Iterable[NameMap],
    respelled: Mapping[str, str],
    renamed: Mapping[str, str],
    guids: Mapping[str, tuple[Guid, ...]],
) -> Iterator[CablingExplanation]:
    """Yield one explanation for all names that differ where the cables are right, and one for each unproven map.

    `respelled`: other spellings of planned names; `renamed`: unknown names of devices that neighbours identify, and
    `guids` these devices.
    """
    maps = tuple(maps)
    proven = [found for found in maps if found.proven]
    devices = {**respelled, **renamed}
    if proven or devices:
        yield _right(proven, devices, guids)
    for found in maps:
        if not found.proven:
            yield _unproven(found)


def _right(
    maps: list[NameMap], devices: Mapping[str, str], guids: Mapping[str, tuple[Guid, ...]]
) -> CablingExplanation:
    parts = [f"{_hosts(found.hosts)}: {_pairs(found.names)}" for found in maps]
    if devices:
        parts.append(f"{len(devices)} devices: {_pairs(devices)}")
    steps = [Rename(seen, PortName(planned, ""), guids.get(seen, ())) for seen, planned in devices.items()]
    steps += [
        Rename(f"{host} {seen}", PortName(host, planned), ())
        for found in maps
        for host in found.hosts
        for seen, planned in found.names.items()
    ]
    return CablingExplanation(
        kind=FaultKind.NAMES_DIFFER,
        cause=f"names differ from the plan, the cables are right: {'; '.join(parts)}",
        action="move no cable: write these names into the plan, or set the node descriptions to the plan's names",
        devices=tuple(dict.fromkeys((*devices, *(host for found in maps for host in found.hosts)))),
        links=0,
        steps=tuple(steps),
    )


def _unproven(found: NameMap) -> CablingExplanation:
    return CablingExplanation(
        kind=FaultKind.NAMES_UNPROVEN,
        cause=f"{_hosts(found.hosts)}: the adapters have other names than in the plan, and only their cables suggest "
        f"{_pairs(found.names)}: unknown whether the names or the cables are exchanged",
        action="read the GUIDs of the adapters (clusterctl discover, or --guids); move no cable before",
        nodes=found.hosts,
        ports=tuple(PortName(host, planned) for host in found.hosts for planned in sorted(found.names.values())),
        steps=tuple(
            Rename(f"{host} {seen}", PortName(host, planned), ())
            for host in found.hosts
            for seen, planned in found.names.items()
        ),
        tie=True,
    )


def _hosts(hosts: tuple[str, ...]) -> str:
    return hosts[0] if len(hosts) == 1 else f"{len(hosts)} hosts"


def _pairs(names: Mapping[str, str]) -> str:
    return shortened(
        (f"{seen} is {planned}" for seen, planned in sorted(names.items(), key=lambda p: natural_key(p[0]))), 8
    )
