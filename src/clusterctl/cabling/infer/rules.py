"""The rules of wiring, inferred from the votes of most cables."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import TypeVar

from clusterctl.cabling.actions import Ends
from clusterctl.fleet.fabric.wiring import PortName

T = TypeVar("T", bound=Hashable)

MIN_WITNESSES = 3
"""Two that agree may be two that are wrong in the same way."""
_SHARE = 2 / 3
"""Less than this is no rule, but a mixture."""


def majority(votes: Iterable[T]) -> T | None:
    """Return the value of at least two thirds of three or more votes; else None."""
    counts = Counter(votes)
    if not counts:
        return None
    winner, count = counts.most_common(1)[0]
    return winner if count >= MIN_WITNESSES and count >= _SHARE * counts.total() else None


def alike(sets: Mapping[str, set[str]]) -> list[tuple[str, ...]]:
    """Return names in groups: two belong together where the smaller one shares more than half of its members."""
    shared: Counter[tuple[str, str]] = Counter()
    by_member: dict[str, list[str]] = defaultdict(list)
    for name, members in sets.items():
        for member in members:
            by_member[member].append(name)
    for names in by_member.values():
        shared.update(combinations(sorted(names), 2))
    leader = {name: name for name in sets}

    def find(name: str) -> str:
        while leader[name] != name:
            leader[name] = leader[leader[name]]
            name = leader[name]
        return name

    for (a, b), count in shared.items():
        if 2 * count > min(len(sets[a]), len(sets[b])):
            leader[find(b)] = find(a)
    groups: dict[str, list[str]] = defaultdict(list)
    for name in sorted(sets):
        groups[find(name)].append(name)
    return [tuple(group) for group in groups.values()]


_NUMBER = re.compile(r"([0-9]{1,9})\D*$")


@dataclass(frozen=True, slots=True)
class HostCable:
    """An adapter, and the leaf's port that it is in."""

    leaf: PortName
    adapter: PortName

    @property
    def number(self) -> int:
        return int(self.leaf.port)


@dataclass(frozen=True, slots=True)
class HostCablingRule:
    """`expected` are the cables that the rule asks for; `groups` rail → leaf, for each group of hosts."""

    expected: tuple[Ends, ...]
    groups: tuple[Mapping[str, str], ...]


def _leaf_groups(cables: Iterable[HostCable]) -> list[dict[str, str]]:
    """Return the groups of leaves that serve the same hosts, each as rail → leaf."""
    by_leaf: dict[str, list[HostCable]] = defaultdict(list)
    for cable in cables:
        by_leaf[cable.leaf.device].append(cable)
    rails = {leaf: majority(cable.adapter.port for cable in here) for leaf, here in by_leaf.items()}
    hosts_of = {leaf: {c.adapter.device for c in by_leaf[leaf]} for leaf, rail in rails.items() if rail}
    return [_by_rail(group, rails) for group in alike(hosts_of)]


def infer_hosts(cables: Iterable[HostCable]) -> HostCablingRule:
    """Return the rule of the hosts: leaves with one rail each, in groups that serve the same hosts.

    A host is in the same port of each of them, or its port follows from its number; else nothing is expected.
    """
    cables = tuple(cables)
    groups = _leaf_groups(cables)
    of_leaf = {leaf: number for number, group in enumerate(groups) for leaf in group.values()}
    homes = _homes(cables, of_leaf)
    members: dict[int, list[HostCable]] = defaultdict(list)
    for cable in cables:
        if cable.adapter.device in homes:
            members[homes[cable.adapter.device]].append(cable)
    expected = [ends for number, group in enumerate(groups) for ends in _of_group(members[number], group)]
    return HostCablingRule(tuple(expected), tuple(groups))


def _by_rail(group: Iterable[str], rails: Mapping[str, str | None]) -> dict[str, str]:
    """Return rail → leaf, except for rails that two leaves of the group carry."""
    leaves = {leaf: rail for leaf in group if (rail := rails[leaf])}
    count = Counter(leaves.values())
    return {rail: leaf for leaf, rail in sorted(leaves.items()) if count[rail] == 1}


def _homes(cables: Iterable[HostCable], of_leaf: Mapping[str, int]) -> dict[str, int]:
    """Return host → the group where most of its adapters are; hosts in doubt have none."""
    votes: dict[str, Counter[int]] = defaultdict(Counter)
    for cable in cables:
        if cable.leaf.device in of_leaf:
            votes[cable.adapter.device][of_leaf[cable.leaf.device]] += 1
    homes = {}
    for host, counted in votes.items():
        home, count = counted.most_common(1)[0]
        if 2 * count > counted.total():
            homes[host] = home
    return homes


def _of_group(cables: Iterable[HostCable], group: Mapping[str, str]) -> list[Ends]:
    """Return what a group's hosts should have: each rail's adapter in that rail's leaf, at the host's port."""
    by_host: dict[str, list[HostCable]] = defaultdict(list)
    for cable in cables:
        by_host[cable.adapter.device].append(cable)
    ports = _distinct(_ports(by_host))
    every = majority(frozenset(cable.adapter.port for cable in here) for here in by_host.values()) or frozenset()
    return [
        frozenset((PortName(group[rail], str(port)), PortName(host, rail)))
        for host, port in ports.items()
        for rail in sorted(every | {cable.adapter.port for cable in by_host[host]})
        if rail in group
    ]


def _usual_offsets(by_host: Mapping[str, list[HostCable]]) -> dict[str, int | None]:
    """Return the difference of port number and host number by the stem of the hosts' names."""
    offsets: dict[str, list[int]] = defaultdict(list)
    for host, here in by_host.items():
        stem, number = numbered(host)
        offsets[stem] += [cable.number - number for cable in here if number is not None]
    return {stem: majority(found) for stem, found in offsets.items()}


def _distinct(ports: Mapping[str, int | None]) -> dict[str, int]:
    """Return the ports that are known and of one host only."""
    count = Counter(ports.values())
    return {host: port for host, port in ports.items() if port and count[port] == 1}


def _ports(by_host: Mapping[str, list[HostCable]]) -> dict[str, int | None]:
    """Return host → its port number: the same on most of its leaves, else by its own number as its namesakes'."""
    ports = {host: majority(cable.number for cable in here) for host, here in by_host.items()}
    usual = _usual_offsets(by_host)
    last = max((cable.number for here in by_host.values() for cable in here), default=0)
    for host, port in ports.items():
        stem, number = numbered(host)
        offset = usual[stem]
        if port is None and number is not None and offset is not None and 0 < number + offset <= last:
            ports[host] = number + offset
    return ports


def numbered(host: str) -> tuple[str, int | None]:
    """Return prefix and number: `luna-0121` is the 121st `luna-`."""
    found = _NUMBER.search(host)
    return (host[: found.start()], int(found[1])) if found else (host, None)


_TIER_SHARE = 0.125


@dataclass(frozen=True, slots=True)
class TrunkRule:
    """`expected` are the cables that the rule asks for; `pods` the groups of lower switches cabled alike."""

    expected: tuple[Ends, ...]
    pods: tuple[tuple[str, ...], ...]


def _neighbours(trunks: Iterable[Ends]) -> Mapping[str, Counter[str]]:
    """Return the number of cables from each switch to each other one."""
    near: dict[str, Counter[str]] = defaultdict(Counter)
    for ends in trunks:
        a, b = (end.device for end in ends)
        near[a][b] += 1
        near[b][a] += 1
    return near


def tiers(trunks: Iterable[Ends], hosts_at: Mapping[str, int]) -> dict[str, int]:
    """Switch → how many steps it is above the leaves, which are 0. `hosts_at` counts the host cables of a switch.

    More than one cable, and an eighth of all, makes a switch's tier: a host in a spine's port makes it no leaf.
    Switches of no tier are left out.
    """
    near = _neighbours(trunks)
    cables = {device: near[device].total() + hosts_at.get(device, 0) for device in (*near, *hosts_at)}
    edge = {device for device, count in hosts_at.items() if count > max(1, _TIER_SHARE * cables[device])}
    level = dict.fromkeys(edge, 0)
    while edge:
        down: Counter[str] = Counter()
        for low in edge:
            down.update(near[low])
        upper = {d for d, count in down.items() if d not in level and count > max(1, _TIER_SHARE * cables[d])}
        level |= dict.fromkeys(upper, max(level.values()) + 1)
        edge = upper
    return level


def _upward(trunks: Iterable[Ends], level: Mapping[str, int]) -> dict[str, dict[int, PortName]]:
    """Return the port one tier up to which each port of a switch leads."""
    up: dict[str, dict[int, PortName]] = defaultdict(dict)
    for ends in trunks:
        low, high = sorted(ends, key=lambda end: level.get(end.device, -1))
        if level.get(low.device, -1) + 1 == level.get(high.device) and level.get(low.device, -1) >= 0:
            up[low.device][int(low.port)] = high
    return up


def infer_trunks(trunks: Iterable[Ends], level: Mapping[str, int]) -> TrunkRule:
    """Return the rule of the cables one tier up. In a pod, port p of each switch leads to the same upper one.

    There, all cables of one lower switch are in the same port number, counted on where several run in parallel.
    """
    up = _upward(trunks, level)
    pods = alike({low: {high.device for high in ports.values()} for low, ports in up.items()})
    expected = [ends for pod in pods for ends in _of_pod({low: up[low] for low in pod})]
    return TrunkRule(tuple(_of_single_ports(expected)), tuple(pods))


def _of_single_ports(cables: Sequence[Ends]) -> Iterator[Ends]:
    """Yield the cables whose two ports no other cable needs."""
    count = Counter(end for ends in cables for end in ends)
    yield from (ends for ends in cables if all(count[end] == 1 for end in ends))


def _of_pod(up: Mapping[str, Mapping[int, PortName]]) -> list[Ends]:
    at: dict[int, list[str]] = defaultdict(list)
    for ports in up.values():
        for number, high in ports.items():
            at[number].append(high.device)
    above = {number: upper for number in sorted(at) if (upper := majority(at[number]))}
    nth = _nth_to_the_same(above)
    expected = []
    for low, ports in up.items():
        own = majority(int(high.port) - nth[number] for number, high in ports.items() if number in nth)
        if own is not None:
            expected += [
                frozenset((PortName(low, str(number)), PortName(upper, str(own + nth[number]))))
                for number, upper in above.items()
            ]
    return expected


def _nth_to_the_same(above: Mapping[int, str]) -> dict[int, int]:
    """Return for each port how many ports with a lower number lead to the same switch."""
    parallel: Counter[str] = Counter()
    nth = {}
    for number, upper in above.items():
        nth[number] = parallel[upper]
        parallel[upper] += 1
    return nth
