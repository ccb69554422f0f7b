"""The runs of one rail by part: which parts can explain that runs failed, and the evidence against each."""

from __future__ import annotations

import itertools
import math
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from clusterctl_burnin.hunting.model import SHARED, Assumptions, HuntPart, PartKind, Topology, host, pair
from clusterctl_burnin.hunting.record import HuntRun

FAR = 14.0
"""A part that explains a run e^8 times worse than the best one is no candidate for it."""

SMALLEST_LEAF = 3
"""Of a leaf with fewer hosts, the hosts are suspected instead."""


_Index = Mapping[PartKind, Mapping[str, list[int]]]
"""The indices of runs by a part in them: the kind, then the name of the host or leaf."""


@dataclass(frozen=True, slots=True)
class HuntCandidate:
    """A part with a way to be bad (always, or now and then).

    silent   the probability that it does not show in a run
    weight   logarithm: its prior odds, and how improbable it makes the runs that passed
    failed   the indices of the failed runs that it could have failed
    """

    part: HuntPart
    silent: float
    weight: float
    failed: tuple[int, ...]

    def odds(self, noise: Sequence[float]) -> float:
        """Return the log odds of its failed runs, if the part is bad, against noise alone."""
        return sum([math.log((1 - (1 - noise[run]) * self.silent) / noise[run]) for run in self.failed])


def explained(found: Sequence[HuntCandidate], noise: Sequence[float]) -> list[float]:
    """Return for each candidate the log odds of the part alone against noise alone.

    All pairs of a wide group have the same failed runs, so that these are weighed once.
    """
    known: dict[tuple[float, tuple[int, ...]], float] = {}
    scores = []
    for candidate in found:
        key = (candidate.silent, candidate.failed)
        odds = known.get(key)
        if odds is None:
            odds = known[key] = candidate.odds(noise)
        scores.append(candidate.weight + odds)
    return scores


class HuntEvidence:
    """The runs of one rail: those that failed, those that passed, and the parts in them."""

    def __init__(self, runs: Sequence[HuntRun], hosts: Sequence[str], topology: Topology) -> None:
        self.failed = [run for run in runs if run.failed]
        self.passed = [run for run in runs if not run.failed]
        self.rounds = sorted({run.round for run in runs})
        self._hosts = len(hosts)
        self._leaves = members_by_leaf(hosts, topology)
        self._leaf_of = {name: leaf for leaf, names in self._leaves.items() for name in names}

    def candidates(self, assumptions: Assumptions) -> list[HuntCandidate]:
        """Return every part that was in a failed run, each with each way to be bad, in a fixed order."""
        passed, failed = self._index(self.passed), self._index(self.failed)
        ways = {kind: self._ways(kind, assumptions) for kind in PartKind}
        return [
            HuntCandidate(part, 1 - shows, odds + good * hidden, bad)
            for part, (good, bad) in self._parts(passed, failed)
            for shows, odds, hidden in ways[part.kind]
        ]

    def _ways(self, kind: PartKind, assumptions: Assumptions) -> list[tuple[float, float, float]]:
        """Return each way to be bad: how often it shows, and the logarithms of its prior odds and of not showing."""
        ways = assumptions.ways(kind)
        prior = assumptions.prior(kind, self._hosts) / len(ways)
        return [(shows, math.log(prior / (1 - prior)), math.log(1 - shows)) for shows in ways]

    def _index(self, runs: Sequence[HuntRun]) -> _Index:
        by_host: dict[str, list[int]] = defaultdict(list)
        by_leaf: dict[str, list[int]] = defaultdict(list)
        by_uplink: dict[str, list[int]] = defaultdict(list)
        for index, run in enumerate(runs):
            for name in run.group:
                by_host[name].append(index)
            leaves = {self._leaf_of[name] for name in run.group if name in self._leaf_of}
            for leaf in leaves:
                by_leaf[leaf].append(index)
                if len(leaves) > 1:
                    by_uplink[leaf].append(index)
        return {PartKind.HOST: by_host, PartKind.LEAF: by_leaf, PartKind.UPLINK: by_uplink}

    def _parts(self, passed: _Index, failed: _Index) -> Iterator[tuple[HuntPart, tuple[int, tuple[int, ...]]]]:
        """Yield each part, in how many passed runs it was, and in which failed ones."""
        if len(self.failed) > 1:
            yield HuntPart(PartKind.ALL, ()), (len(self.passed), tuple(range(len(self.failed))))
        for kind, by_name in sorted(failed.items()):
            for name, runs in sorted(by_name.items()):
                part = self._part_of(kind, name, runs)
                if part is not None:
                    yield part, (len(passed[kind].get(name, ())), tuple(runs))
        yield from self._pairs(passed[PartKind.HOST])

    def _pairs(self, passed: Mapping[str, Sequence[int]]) -> Iterator[tuple[HuntPart, tuple[int, tuple[int, ...]]]]:
        """Yield each pair of hosts that failed together. `passed`: the indices of the passed runs, by host."""
        together: dict[tuple[str, str], list[int]] = defaultdict(list)
        for index, run in enumerate(self.failed):
            for names in itertools.combinations(run.group, 2):
                together[names].append(index)
        mask = {name: sum(1 << run for run in runs) for name, runs in passed.items()}
        for (one, other), runs in sorted(together.items()):
            good = (mask.get(one, 0) & mask.get(other, 0)).bit_count()
            yield pair(one, other), (good, tuple(runs))

    def _part_of(self, kind: PartKind, name: str, failed: Sequence[int]) -> HuntPart | None:
        """Return the host or leaf. None for a leaf that cannot be distinguished from its hosts (it has few, or
        failed once), and for the uplinks of the second of two leaves, which are those of the first.
        """
        if kind is PartKind.HOST:
            return host(name)
        if len(failed) < 2 or len(self._leaves[name]) < SMALLEST_LEAF:
            return None
        if kind is PartKind.UPLINK and len(self._leaves) == 2:
            return HuntPart(kind, self._leaves[name], " and ".join(self._leaves)) if name == min(self._leaves) else None
        return HuntPart(kind, self._leaves[name], name)


def members_by_leaf(hosts: Sequence[str], topology: Topology) -> Mapping[str, tuple[str, ...]]:
    """Return the hosts of each leaf; empty where fewer than two leaves are known."""
    leaves: dict[str, list[str]] = defaultdict(list)
    for name in sorted(hosts):
        if name in topology:
            leaves[topology[name]].append(name)
    return {leaf: tuple(names) for leaf, names in sorted(leaves.items())} if len(leaves) > 1 else {}


def near(found: Sequence[HuntCandidate], noise: Sequence[float]) -> list[HuntCandidate]:
    """Return the candidates that explain one of their runs nearly as well as the best one for it.

    A leaf explains many runs at once, so that it is no measure for hosts, several of which may explain them together.
    """
    scores = explained(found, noise)
    best = {shared: [0.0] * len(noise) for shared in (False, True)}
    for candidate, score in zip(found, scores, strict=True):
        mine = best[candidate.part.kind in SHARED]
        for run in candidate.failed:
            mine[run] = max(mine[run], score)
    return [
        candidate
        for candidate, score in zip(found, scores, strict=True)
        if any(score > best[candidate.part.kind in SHARED][run] - FAR for run in candidate.failed)
    ]
