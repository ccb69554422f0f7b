"""Follow-up runs for failures that are not explained yet, chosen by their expected information.

The information of a run is the mutual information of its result and the causes in doubt: the entropy of the result,
less the entropy that is left if the cause is known.
"""

from __future__ import annotations

import itertools
import math
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from clusterctl_burnin.hunting.deal import Meetings, Sizes, mixed
from clusterctl_burnin.hunting.model import Group, HuntPart, PartKind
from clusterctl_burnin.hunting.posterior import PosteriorCase

WORTH = 0.0003
"""Bits: a run of less expected information is not worth its time."""
HOSTS, PAIRS, RERUNS = 12, 6, 3
"""The most hosts, pairs and failed groups of a case that are considered for a round."""
MANY = 60
"""With more suspects than this, a run of half of them has far more information than a run of one."""


@dataclass(frozen=True, slots=True)
class Seed:
    """Hosts to run together with partners that are proven, without some hosts. `leaves`: those of these come first."""

    names: Group
    without: frozenset[str] = frozenset()
    leaves: frozenset[str] = frozenset()


@dataclass(slots=True)
class FollowUpPool:
    """The hosts that can still be placed in a round.

    proven  that passed and are not suspected, those first that have waited longest
    others  that are in doubt themselves; they take part where proven hosts are too few
    """

    proven: list[str]
    others: list[str]
    leaf_of: Mapping[str, str]
    met: Meetings
    least: int

    def filled(self, seed: Seed, wanted: int) -> list[str]:
        """Return the seed with proven partners up to `wanted`, as the seed wants them.

        Hosts in doubt take part only where the group were smaller than `least` without them.
        """
        group, leaves = list(seed.names), seed.leaves
        for source, size in ((self.proven, wanted), (self.others, self.least)):
            some = [name for name in source if name not in group and name not in seed.without]
            preferred = [n for n in some if self.leaf_of.get(n) in leaves] or some
            while len(group) < size and preferred:
                best = min(preferred[:24], key=lambda name: self.met.of(name, group))
                preferred.remove(best)
                group.append(best)
        return group

    def take(self, group: Collection[str]) -> None:
        self.proven = [name for name in self.proven if name not in group]
        self.others = [name for name in self.others if name not in group]

    def has(self, names: Iterable[str]) -> bool:
        there = {*self.proven, *self.others}
        return all(name in there for name in names)


@dataclass(frozen=True, slots=True)
class FollowUpLimits:
    """When a part is decided, and how large groups are; `widest`: groups for many pairs at once."""

    sizes: Sizes
    widest: int
    sure: float


def follow_up(cases: Sequence[PosteriorCase], pool: FollowUpPool, limits: FollowUpLimits, number: int) -> list[Group]:
    """Return the runs of the next round that decide the cases, the most informative first; no host is in two."""
    chosen: list[Group] = []
    for case in cases:
        for _ in range(HOSTS):
            tests = [(bits(case, group), group) for group in _tests(case, pool, limits, number)]
            best = max(tests, key=lambda test: (test[0] / len(test[1]), test[1]), default=(0.0, ()))
            if best[0] < WORTH:
                break
            chosen.append(best[1])
            pool.take(best[1])
    return chosen


def bits(case: PosteriorCase, group: Collection[str]) -> float:
    """Return the expected information, in bits, of a run of the group about the causes of the case."""
    members = frozenset(group)
    noise = min(case.noise)
    passes = {part: 1 - shows for part, shows in case.shows.items() if shows_in(part, members)}
    by_result: dict[float, float] = defaultdict(float)
    for parts, probability in case.sets:
        quiet = 1 - noise
        for part in parts:
            quiet *= passes.get(part, 1.0)
        by_result[1 - quiet] += probability
    mean = sum(probability * fails for fails, probability in by_result.items())
    return _entropy(mean) - sum(probability * _entropy(fails) for fails, probability in by_result.items())


def shows_in(part: HuntPart, group: frozenset[str]) -> bool:
    """Return whether the part takes part in a run of the group."""
    match part.kind:
        case PartKind.HOST | PartKind.PAIR:
            return group.issuperset(part.names)
        case PartKind.LEAF:
            return not group.isdisjoint(part.names)
        case PartKind.UPLINK:
            return not group.isdisjoint(part.names) and not group.issubset(part.names)
        case PartKind.ALL:
            return True


def _entropy(p: float) -> float:
    return 0.0 if p <= 0 or p >= 1 else -p * math.log2(p) - (1 - p) * math.log2(1 - p)


def _tests(case: PosteriorCase, pool: FollowUpPool, limits: FollowUpLimits, number: int) -> Iterator[Group]:
    """Yield groups worth a look: a suspect among partners, a pair, a failed group again, halves, a leaf."""
    for seed in _seeds(case, limits, number):
        if pool.has(seed.names):
            group = pool.filled(seed, max(limits.sizes.most, len(seed.names)))
            if len(group) >= limits.sizes.least:
                yield tuple(sorted(group))


def _seeds(case: PosteriorCase, limits: FollowUpLimits, number: int) -> Iterator[Seed]:
    unsure = [part for part, p in case.parts.items() if p < limits.sure]
    hosts = [part.names[0] for part in unsure if part.kind is PartKind.HOST]
    pairs = [part.names for part in unsure if part.kind is PartKind.PAIR]
    if len(unsure) <= MANY:
        yield from (Seed((name,)) for name in hosts[:HOSTS])
        yield from itertools.chain.from_iterable(map(_of_pair, pairs[:PAIRS]))
    yield from (Seed(run.group) for run in case.runs[-RERUNS:])
    yield from _halves(mixed({*hosts}.union(*pairs), number), max(limits.sizes.most, limits.widest))
    yield from _of_leaves(unsure, limits)


def _halves(suspects: Sequence[str], most: int) -> Iterator[Seed]:
    """Yield both halves of more than two suspects, of `most` hosts at most."""
    if len(suspects) > 2:
        yield from (Seed(tuple(half[:most])) for half in (suspects[::2], suspects[1::2]))


def _of_leaves(unsure: Iterable[HuntPart], limits: FollowUpLimits) -> Iterator[Seed]:
    """Yield hosts of each leaf in doubt among themselves, and with hosts of other leaves."""
    leaves = [part.names for part in unsure if part.kind in (PartKind.LEAF, PartKind.UPLINK)]
    for names in leaves:
        yield Seed(names[: limits.sizes.most])
        yield Seed(names[: max(1, limits.sizes.most // 2)], without=frozenset(names))


def _of_pair(ends: Group) -> Iterator[Seed]:
    """Yield the pair, and each of its hosts without the other."""
    yield Seed(ends)
    for name, other in (ends, ends[::-1]):
        yield Seed((name,), without=frozenset({other}))
