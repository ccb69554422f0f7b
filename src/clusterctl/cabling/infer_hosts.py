"""The rule by which hosts are cabled: one rail a leaf, groups of leaves, the same port number on each of them."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from clusterctl.cabling.actions import Ends
from clusterctl.cabling.majority import alike, majority
from clusterctl.fleet.wiring import PortName

_NUMBER = re.compile(r"(\d+)\D*$")


@dataclass(frozen=True, slots=True)
class HostCable:
    """An adapter, and the leaf's port that it is in."""

    leaf: PortName
    adapter: PortName

    @property
    def number(self) -> int:
        return int(self.leaf.port)


@dataclass(frozen=True, slots=True)
class HostRule:
    """`expected` are the cables that the rule asks for; `groups` rail → leaf, for each group of hosts."""

    expected: tuple[Ends, ...]
    groups: tuple[Mapping[str, str], ...]


def infer_hosts(cables: Iterable[HostCable]) -> HostRule:
    """Leaves with one rail each, in groups that serve the same hosts; a host sits in the same port of each of them, or
    its port follows from its number. Where neither holds, nothing is expected.
    """
    cables = tuple(cables)
    by_leaf: dict[str, list[HostCable]] = defaultdict(list)
    for cable in cables:
        by_leaf[cable.leaf.device].append(cable)
    rails = {leaf: majority(cable.adapter.port for cable in here) for leaf, here in by_leaf.items()}
    hosts_of = {leaf: {c.adapter.device for c in by_leaf[leaf]} for leaf, rail in rails.items() if rail}
    groups = [_by_rail(group, rails) for group in alike(hosts_of)]
    of_leaf = {leaf: number for number, group in enumerate(groups) for leaf in group.values()}
    homes = _homes(cables, of_leaf)
    members: dict[int, list[HostCable]] = defaultdict(list)
    for cable in cables:
        if cable.adapter.device in homes:
            members[homes[cable.adapter.device]].append(cable)
    expected = [ends for number, group in enumerate(groups) for ends in _of_group(members[number], group)]
    return HostRule(tuple(expected), tuple(groups))


def _by_rail(group: Iterable[str], rails: Mapping[str, str | None]) -> dict[str, str]:
    """Rail → leaf, but for rails that two leaves of the group carry."""
    leaves = {leaf: rail for leaf in group if (rail := rails[leaf])}
    count = Counter(leaves.values())
    return {rail: leaf for leaf, rail in sorted(leaves.items()) if count[rail] == 1}


def _homes(cables: Iterable[HostCable], of_leaf: Mapping[str, int]) -> dict[str, int]:
    """Host → the group where most of its adapters are; hosts in doubt have none."""
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
    """What a group's hosts should have: each rail's adapter in that rail's leaf, at the host's port."""
    by_host: dict[str, list[HostCable]] = defaultdict(list)
    for cable in cables:
        by_host[cable.adapter.device].append(cable)
    ports = _ports(by_host)
    known = Counter(port for port in ports.values() if port)
    every = majority(frozenset(cable.adapter.port for cable in here) for here in by_host.values()) or frozenset()
    return [
        frozenset((PortName(group[rail], str(port)), PortName(host, rail)))
        for host, port in ports.items()
        if port and known[port] == 1
        for rail in sorted(every | {cable.adapter.port for cable in by_host[host]})
        if rail in group
    ]


def _ports(by_host: Mapping[str, list[HostCable]]) -> dict[str, int | None]:
    """Host → its port number: the same on most of its leaves, or else as far from its own number as its namesakes'."""
    ports = {host: majority(cable.number for cable in here) for host, here in by_host.items()}
    offsets: dict[str, list[int]] = defaultdict(list)
    for host, here in by_host.items():
        stem, number = _numbered(host)
        offsets[stem] += [cable.number - number for cable in here if number is not None]
    usual = {stem: majority(found) for stem, found in offsets.items()}
    last = max((cable.number for here in by_host.values() for cable in here), default=0)
    for host, port in ports.items():
        stem, number = _numbered(host)
        offset = usual[stem]
        if port is None and number is not None and offset is not None and 0 < number + offset <= last:
            ports[host] = number + offset
    return ports


def _numbered(host: str) -> tuple[str, int | None]:
    """`luna-0121` is the 121st `luna-`."""
    found = _NUMBER.search(host)
    return (host[: found.start()], int(found[1])) if found else (host, None)
