"""Pairs of hosts to measure, in rounds: within a leaf, across a pod, and across the core, by the circle method.

Every pair of N hosts would take N − 1 rounds; a few rounds of each distance lead every host over every tier instead.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeVar

from clusterctl.cabling.burn.layout import HostPosition
from clusterctl.fleet.errors import UsageError

DEFAULT_ROUNDS = 6
MAX_HOSTS_EVERY_PAIR = 32
T = TypeVar("T")


class Distance(enum.Enum):
    """The highest switch between the two hosts of a pair."""

    LEAF = "leaf"
    POD = "pod"
    CORE = "core"
    ANY = "any"


@dataclass(frozen=True, slots=True)
class PairRound:
    """Pairs that are measured at the same time: no host is in two of them."""

    distance: Distance
    pairs: tuple[tuple[str, str], ...]


def rounds_by_distance(hosts: Sequence[HostPosition], rounds: int = DEFAULT_ROUNDS) -> tuple[PairRound, ...]:
    """Return at most `rounds` rounds, the distances in turn. A distance that the fabric does not have, or that has no
    pairs left, leaves its turn to the others. No pair comes twice.
    """
    turns = _sources(hosts)
    found: list[PairRound] = []
    while turns and len(found) < rounds:
        distance, source = turns.pop(0)
        pairs = next(source, ())
        if pairs:
            found.append(PairRound(distance, pairs))
            turns.append((distance, source))
    return tuple(found)


def _sources(hosts: Sequence[HostPosition]) -> list[tuple[Distance, Iterator[tuple[tuple[str, str], ...]]]]:
    """Return for each distance the rounds of pairs that it has."""
    pods = list(_split(hosts, lambda host: host.pod).values())
    leaves = [list(_split(pod, lambda host: host.leaf).values()) for pod in pods]
    return [
        (Distance.LEAF, _side_by_side([_within([h.name for h in leaf]) for pod in leaves for leaf in pod])),
        (Distance.POD, _side_by_side([_between([[h.name for h in leaf] for leaf in pod]) for pod in leaves])),
        (Distance.CORE, _between([[h.name for h in pod] for pod in pods])),
    ]


def every_pair(hosts: Sequence[HostPosition]) -> tuple[PairRound, ...]:
    """Return each pair of hosts once. Raise UsageError for more hosts than is sensible."""
    if len(hosts) > MAX_HOSTS_EVERY_PAIR:
        raise UsageError(
            f"every pair of {len(hosts)} hosts would take {len(hosts) - 1} rounds or more",
            where="--every-pair",
            remedy=f"it is for at most {MAX_HOSTS_EVERY_PAIR} hosts; leave it out, or ask for more --rounds",
        )
    return tuple(PairRound(Distance.ANY, pairs) for pairs in _within([host.name for host in hosts]))


def unpaired(hosts: Sequence[HostPosition], rounds: Sequence[PairRound]) -> tuple[str, ...]:
    """Return hosts that are in no round, as can happen to the last of an odd number."""
    met = {name for one in rounds for pair in one.pairs for name in pair}
    return tuple(host.name for host in hosts if host.name not in met)


def circle(members: Sequence[T]) -> Iterator[tuple[tuple[T, T], ...]]:
    """Yield all rounds of a round robin: each pair once, no member twice in a round; of an odd number one waits."""
    table: list[T | None] = [*members, *([None] if len(members) % 2 else [])]
    half = len(table) // 2
    for _ in range(len(table) - 1):
        couples = zip(table[:half], reversed(table[half:]), strict=True)
        yield tuple((a, b) for a, b in couples if a is not None and b is not None)
        table = [table[0], table[-1], *table[1:-1]]


def _within(names: Sequence[str]) -> Iterator[tuple[tuple[str, str], ...]]:
    return (pairs for pairs in circle(names) if pairs)


def _between(groups: Sequence[Sequence[str]]) -> Iterator[tuple[tuple[str, str], ...]]:
    """Yield rounds in which every pair is of two groups: groups meet by the circle method, repeatedly. Each time the
    larger group's members move on by one.
    """
    most = max((len(group) for group in groups), default=0)
    for moved in range(most):
        for meeting in circle(groups):
            pairs = tuple(pair for one, other in meeting for pair in _meet(one, other, moved))
            if pairs:
                yield pairs


def _meet(one: Sequence[str], other: Sequence[str], moved: int) -> Iterator[tuple[str, str]]:
    """Yield the pairs; none once the larger group has come full circle: those pairs were there."""
    few, many = sorted((one, other), key=len)
    if moved < len(many):
        for index, name in enumerate(few):
            yield name, many[(index + moved) % len(many)]


def _side_by_side(
    sources: Sequence[Iterator[tuple[tuple[str, str], ...]]],
) -> Iterator[tuple[tuple[str, str], ...]]:
    """Yield the rounds of several groups at the same time, until all are used up."""
    while pairs := tuple(pair for source in sources for pair in next(source, ())):
        yield pairs


def _split(hosts: Sequence[HostPosition], key: Callable[[HostPosition], int]) -> dict[int, list[HostPosition]]:
    groups: dict[int, list[HostPosition]] = {}
    for host in hosts:
        groups.setdefault(key(host), []).append(host)
    return groups
