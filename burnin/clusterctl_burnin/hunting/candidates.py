"""Which parts can explain that runs went wrong, and what speaks for or against each by itself."""

from __future__ import annotations

import itertools
import math
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from clusterctl_burnin.hunting.model import Group, Noise, Part

FAR = 10.0
"""A part that explains a run e^10 times worse than the best one is no candidate for it."""
PATH_FAR = 6.0
"""Likewise for paths, of which there are many: while a host explains a run better, they need not be looked at."""


@dataclass(frozen=True, slots=True)
class Runs:
    """The runs of one rail that told something."""

    passed: tuple[Group, ...]
    failed: tuple[Group, ...]


@dataclass(frozen=True, slots=True)
class Candidate:
    """A part with a way to be bad (steadily, or coming and going).

    silent   the probability that it does not show in a run
    weight   logarithm: how much rarer the runs that passed, and the prior, make it than a good part
    failed   the indices of the runs that went wrong with it
    """

    part: Part
    silent: float
    weight: float
    failed: tuple[int, ...]


def candidates(runs: Runs, hosts: int, noise: Noise) -> list[Candidate]:
    """In a fixed order: hosts before paths, each by name."""
    passed, failed = _by_host(runs.passed), _by_host(runs.failed)
    steady, fleeting = noise.host * (1 - noise.fleeting_share), noise.host * noise.fleeting_share
    suspects = [
        _candidate((host,), len(passed.get(host, ())), failed[host], prior, shows)
        for host in sorted(failed)
        for prior, shows in ((steady, noise.steady), (fleeting, noise.fleeting))
    ]
    paths = list(_paths(runs, passed, failed, noise.path / max(2, hosts), noise))
    best = _best(len(runs.failed), suspects, noise)
    kept = [c for c in suspects if _near(c, best, FAR, noise)]
    return kept + [c for c in paths if _near(c, best, PATH_FAR, noise)]


def _by_host(groups: tuple[Group, ...]) -> Mapping[str, set[int]]:
    found: dict[str, set[int]] = defaultdict(set)
    for index, group in enumerate(groups):
        for host in group:
            found[host].add(index)
    return found


def _paths(
    runs: Runs, passed: Mapping[str, set[int]], failed: Mapping[str, set[int]], prior: float, noise: Noise
) -> Iterator[Candidate]:
    pairs = {pair for group in runs.failed for pair in itertools.combinations(group, 2)}
    for one, other in sorted(pairs):
        good = len(passed.get(one, set()) & passed.get(other, set()))
        yield _candidate((one, other), good, failed[one] & failed[other], prior, noise.path_shows)


def _candidate(part: Part, passed: int, failed: set[int], prior: float, shows: float) -> Candidate:
    weight = math.log(prior / (1 - prior)) + passed * math.log(1 - shows)
    return Candidate(part, 1 - shows, weight, tuple(sorted(failed)))


def _explains(candidate: Candidate, noise: Noise) -> float:
    """Log weight of the part alone against false alarms alone."""
    shown = 1 - (1 - noise.false_alarm) * candidate.silent
    return candidate.weight + len(candidate.failed) * (math.log(shown) - math.log(noise.false_alarm))


def _best(failed: int, found: list[Candidate], noise: Noise) -> list[float]:
    """Per failed run the best explanation by one part."""
    best = [0.0] * failed
    for candidate in found:
        score = _explains(candidate, noise)
        for run in candidate.failed:
            best[run] = max(best[run], score)
    return best


def _near(candidate: Candidate, best: list[float], far: float, noise: Noise) -> bool:
    score = _explains(candidate, noise)
    return any(score > best[run] - far for run in candidate.failed)
