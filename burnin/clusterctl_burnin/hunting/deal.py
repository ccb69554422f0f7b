"""Dealing hosts to groups: within leaves or across them, suspects apart, two hosts together as rarely as possible.

Rounds within leaves load no uplink. In rounds across leaves each group has hosts of two leaves, and the two change from
round to round: what fails then with one leaf alone is that leaf, or its uplinks.
"""

from __future__ import annotations

import hashlib
import itertools
import math
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from clusterctl.cabling.burn.pair_rounds import circle
from clusterctl_burnin.hunting.evidence import members_by_leaf
from clusterctl_burnin.hunting.model import Group, Topology

LOOKED_AT = 24
"""The next host of a group is chosen among so many; more would take long with thousands of hosts."""


@dataclass(slots=True)
class Meetings:
    """How often two hosts were in one group."""

    times: Counter[tuple[str, str]] = field(default_factory=Counter)

    def add(self, group: Iterable[str]) -> None:
        self.times.update(itertools.combinations(sorted(group), 2))

    def of(self, name: str, others: Collection[str]) -> int:
        return sum(self.times[(name, other) if name < other else (other, name)] for other in others)


def mixed(names: Iterable[str], number: int) -> list[str]:
    """Return the names in an order that looks random, another one for each number, the same in each process."""
    return sorted(names, key=lambda name: hashlib.blake2b(f"{number} {name}".encode(), digest_size=8).digest())


@dataclass(frozen=True, slots=True)
class Sizes:
    """Hosts in a group: at least, and where there are enough."""

    least: int
    most: int


def deal(
    hosts: Sequence[str], suspects: Collection[str], number: int, topology: Topology, sizes: Sizes, met: Meetings
) -> tuple[Group, ...]:
    """Return groups of all `hosts` for the screening round `number` (from 0); rounds alternate across and within.

    The first hosts are placed first. Empty for fewer hosts than the least; of an odd number in pairs, the last waits.
    """
    leaves = _leaves(hosts, topology)
    if number % 2 and len(leaves) > 1:
        blocks = [[names] for names in leaves.values()]
    else:
        blocks = [[leaves[leaf] for leaf in block] for block in _opponents(tuple(leaves), number // 2)]
    groups: list[list[str]] = []
    left: list[str] = []
    for block in blocks:
        count = sum(map(len, block)) // sizes.most
        made, rest = _block(block, suspects, count, sizes.most, met)
        groups += made
        left += rest
    more, left = _block([left], suspects, len(left) // sizes.most, sizes.most, met)
    groups += more
    return tuple(tuple(sorted(group)) for group in _with_rest(groups, left, sizes))


def _leaves(hosts: Sequence[str], topology: Topology) -> Mapping[str, list[str]]:
    """Return the hosts by leaf, in the order given; all in one where leaves are unknown."""
    known = members_by_leaf(hosts, topology)
    leaf_of = {name: leaf for leaf, names in known.items() for name in names}
    leaves: dict[str, list[str]] = {}
    for name in hosts:
        leaves.setdefault(leaf_of.get(name, ""), []).append(name)
    return dict(sorted(leaves.items()))


def _opponents(leaves: Sequence[str], number: int) -> list[tuple[str, ...]]:
    """Return the leaves two by two, other ones each time; of an odd number three are together."""
    if len(leaves) < 3:
        return [tuple(leaves)]
    rounds = len(leaves) - 1 + len(leaves) % 2
    pairs = [tuple(pair) for pair in next(itertools.islice(circle(leaves), number % rounds, None))]
    rest = [leaf for leaf in leaves if not any(leaf in pair for pair in pairs)]
    return [*pairs[:-1], (*pairs[-1], *rest)]


def _block(
    leaves: Sequence[Sequence[str]], suspects: Collection[str], count: int, size: int, met: Meetings
) -> tuple[list[list[str]], list[str]]:
    """Return `count` groups of the hosts of these leaves, alternately from each leaf, and the hosts left over."""
    queues = [sorted(names, key=lambda name: name not in suspects) for names in leaves]
    groups: list[list[str]] = [[] for _ in range(count)]
    for slot in range(size):
        for index, group in enumerate(groups):
            first = (index + slot) % len(queues)
            queue = next(filter(None, (*queues[first:], *queues[:first])), None)
            if queue is None:
                break
            chosen = _next(queue[:LOOKED_AT], group, suspects, met)
            queue.remove(chosen)
            group.append(chosen)
    return groups, [name for queue in queues for name in queue]


def _next(some: Sequence[str], group: Sequence[str], suspects: Collection[str], met: Meetings) -> str:
    """Return the first of those that met the group least: no second suspect, where there is another host."""
    taken = any(name in suspects for name in group)
    return min(some, key=lambda name: (taken and name in suspects, met.of(name, group)))


def _with_rest(groups: list[list[str]], left: list[str], sizes: Sizes) -> list[list[str]]:
    """Place the hosts left over, fewer than a group: as a group of their own, or one by one in the groups there are."""
    if len(left) >= sizes.least:
        return [*groups, left]
    if sizes.most > 2 and groups:
        for index, name in enumerate(left):
            groups[index % len(groups)].append(name)
    return groups


def even_sizes(hosts: int, sizes: Sizes) -> Sizes:
    """Return the sizes for groups of nearly the same size, for a part of the fleet that is screened together."""
    count = max(1, math.ceil(hosts / sizes.most))
    return Sizes(sizes.least, max(sizes.least, math.ceil(hosts / count)))
