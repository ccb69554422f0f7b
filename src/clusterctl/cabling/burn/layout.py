"""Where hosts stand in a fat tree: their rails, leaves and pods, and an order in which neighbours are near each other.

Nothing is asked of names but an order: rails come from the leaves, since the index in an adapter's name is not its rail
(a real fabric of 458 hosts uses mlx5_0 to 3 and 6 to 9).
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from clusterctl.cabling.burn.routes import NOWHERE, Endpoint, Routes
from clusterctl.fleet.natural_order import natural_key


@dataclass(frozen=True, slots=True)
class HostPosition:
    """`leaf` is that of the host's first rail; hosts with equal `pod` reach each other without core switches."""

    name: str
    leaf: int
    pod: int


@dataclass(frozen=True, slots=True)
class HostLayout:
    """`hosts` from one end of the fabric to the other; `rails`: per rail its endpoints in order of the hosts."""

    hosts: tuple[HostPosition, ...]
    rails: tuple[tuple[Endpoint, ...], ...]


def layout_of(routes: Routes) -> HostLayout:
    by_host: dict[str, list[Endpoint]] = defaultdict(list)
    for endpoint in routes.endpoints:
        by_host[endpoint.host].append(endpoint)
    rails = _rails(by_host)
    pods = _pods(routes)
    first = {host: min(ends, key=lambda end: rails[end]) for host, ends in by_host.items()}
    names = {end.leaf: natural_key(routes.names[routes.links[end.out].target].device) for end in routes.endpoints}

    def along(host: str) -> tuple[object, ...]:
        end = first[host]
        port = routes.links[end.out].target.number
        return pods[end.leaf], names[end.leaf], end.leaf, port, natural_key(host)

    order = sorted(by_host, key=along)
    by_rail: dict[int, list[Endpoint]] = defaultdict(list)
    for host in order:
        for end in by_host[host]:
            by_rail[rails[end]].append(end)
    return HostLayout(
        hosts=tuple(HostPosition(host, first[host].leaf, pods[first[host].leaf]) for host in order),
        rails=tuple(tuple(by_rail[rail]) for rail in sorted(by_rail)),
    )


def _rails(by_host: Mapping[str, Iterable[Endpoint]]) -> dict[Endpoint, int]:
    """Return an adapter's rail: the one that most adapters of its leaf have by their order in their hosts. A host with
    two adapters on one rail by that keeps the order of its adapters' names.
    """
    ordinal = {
        end: rail
        for ends in by_host.values()
        for rail, end in enumerate(sorted(ends, key=lambda end: natural_key(end.name.port)))
    }
    votes: dict[int, Counter[int]] = defaultdict(Counter)
    for end, rail in ordinal.items():
        votes[end.leaf][rail] += 1
    leaf_rail = {leaf: max(sorted(count), key=count.__getitem__) for leaf, count in votes.items()}
    rails: dict[Endpoint, int] = {}
    for ends in by_host.values():
        voted = {end: leaf_rail[end.leaf] for end in ends}
        distinct = len(set(voted.values())) == len(voted)
        rails |= voted if distinct else {end: ordinal[end] for end in voted}
    return rails


def _pods(routes: Routes) -> dict[int, int]:
    """Return leaf → number of its pod: leaves that reach each other directly or through switches right above them.

    Pods are numbered in the order of their first leaves' names.
    """
    leaves = {end.leaf for end in routes.endpoints}
    near: dict[int, set[int]] = defaultdict(set)
    for tail, head in zip(routes.tails, routes.heads, strict=True):
        if NOWHERE not in (tail, head) and not leaves.isdisjoint((tail, head)):
            near[tail].add(head)
    pods: dict[int, int] = {}
    by_name = {end.leaf: natural_key(routes.names[routes.links[end.out].target].device) for end in routes.endpoints}
    for leaf in sorted(leaves, key=lambda leaf: (by_name[leaf], leaf)):
        if leaf not in pods:
            pod = len(set(pods.values()))
            pods |= dict.fromkeys(_reached(leaf, near) & leaves, pod)
    return pods


def _reached(start: int, near: Mapping[int, Iterable[int]]) -> set[int]:
    seen, waiting = {start}, [start]
    while waiting:
        fresh = set(near.get(waiting.pop(), ())) - seen
        seen |= fresh
        waiting += fresh
    return seen
