"""How noisy each round was: noise that comes in bursts fails many groups of a round, whatever hosts are in them.

Each round has one level of noise. How probable each level is and which parts are bad is found in turn: from a start
where all rounds are quiet, and from one where noise alone explains every failure. The better explanation holds.
"""

from __future__ import annotations

import heapq
import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence

from clusterctl_burnin.hunting.evidence import HuntCandidate, HuntEvidence, explained
from clusterctl_burnin.hunting.model import Assumptions

TURNS = 4
"""Levels and parts are chosen in turn so often at most; they rarely change after the second time."""


def noise_of_runs(evidence: HuntEvidence, found: Sequence[HuntCandidate], assumptions: Assumptions) -> list[float]:
    """Return for each failed run how probable it is that noise alone failed it, by the other runs of its round."""
    runs = len(evidence.failed)
    quiet = [assumptions.noise[0]] * runs
    raw, _ = _noise(evidence, [1.0] * runs, assumptions)
    return max((_settled(evidence, found, start, assumptions) for start in (quiet, raw)), key=lambda end: end[0])[1]


def _settled(
    evidence: HuntEvidence, found: Sequence[HuntCandidate], noise: list[float], assumptions: Assumptions
) -> tuple[float, list[float]]:
    """Choose parts and noise in turn, from the noise given; return the log weight of the best choice, and its noise."""
    best = (-math.inf, noise)
    for _ in range(TURNS):
        weight, silent = _chosen(found, noise)
        noise, score = _noise(evidence, silent, assumptions)
        if weight + score <= best[0] + 1e-9:
            break
        best = (weight + score, noise)
    return best


def _chosen(found: Sequence[HuntCandidate], noise: Sequence[float]) -> tuple[float, list[float]]:
    """Add the part that explains most, until none explains more than it costs.

    Return their log weight, and how probable it is for each failed run that none of them shows. What a part still
    explains never grows while others are added, so that only the first of the queue is computed again.
    """
    silent = [1.0] * len(noise)
    weight, taken = 0.0, set()
    queue = [(-score, index) for index, score in enumerate(explained(found, noise))]
    queue = [item for item in queue if item[0] < 0]
    heapq.heapify(queue)
    while queue:
        _, index = heapq.heappop(queue)
        candidate = found[index]
        gain = 0.0 if candidate.part in taken else _gain(candidate, noise, silent)
        if gain <= 0:
            continue
        if queue and -gain > queue[0][0]:
            heapq.heappush(queue, (-gain, index))
            continue
        taken.add(candidate.part)
        weight += candidate.weight
        for run in candidate.failed:
            silent[run] *= candidate.silent
    return weight, silent


def _gain(candidate: HuntCandidate, noise: Sequence[float], silent: Sequence[float]) -> float:
    """Return the log weight that the candidate adds to parts that do not show with the probabilities `silent`."""
    quiet = [((1 - noise[run]) * silent[run]) for run in candidate.failed]
    return candidate.weight + sum(math.log((1 - q * candidate.silent) / (1 - q)) for q in quiet)


def _noise(evidence: HuntEvidence, silent: Sequence[float], assumptions: Assumptions) -> tuple[list[float], float]:
    """Return the noise of each failed run, and the log weight. `silent`: how probable it is that no bad part shows."""
    passed = Counter(run.round for run in evidence.passed)
    failed: dict[int, list[int]] = defaultdict(list)
    for index, run in enumerate(evidence.failed):
        failed[run.round].append(index)
    noise = [0.0] * len(silent)
    total, burst = 0.0, 0.0
    for number in evidence.rounds:
        shown = {i: [math.log(1 - (1 - n) * silent[i]) for n in assumptions.noise] for i in failed[number]}
        scores = _scores(passed[number], shown.values(), burst, assumptions)
        for index, logs in shown.items():
            others = _normalised([score - log for score, log in zip(scores, logs, strict=True)])[0]
            noise[index] = sum(p * level for p, level in zip(others, assumptions.noise, strict=True))
        levels, weight = _normalised(scores)
        burst = 1 - levels[0]
        total += weight
    return noise, total


def _scores(passed: int, shown: Iterable[Sequence[float]], burst: float, assumptions: Assumptions) -> list[float]:
    """Return the log weight of each level of noise in a round.

    passed  how many of its runs passed
    shown   of each failed run, the logarithm of how probable its failure is at each level
    """
    priors = _priors(burst, assumptions)
    failed = [sum(logs) for logs in zip(*shown, strict=True)] or [0.0] * len(priors)
    return [
        math.log(prior) + passed * math.log(1 - level) + log
        for prior, level, log in zip(priors, assumptions.noise, failed, strict=True)
    ]


def _normalised(logs: Sequence[float]) -> tuple[list[float], float]:
    """Return the probabilities of these log weights, and the logarithm of their sum."""
    most = max(logs)
    weights = [math.exp(log - most) for log in logs]
    return [weight / sum(weights) for weight in weights], most + math.log(sum(weights))


def _priors(burst: float, assumptions: Assumptions) -> Sequence[float]:
    """Return how probable each level is after a round that was noisy with the probability `burst`."""
    lasting = assumptions.lasting / (1 - assumptions.levels[0])
    quiet = (1 - burst) * assumptions.levels[0] + burst * (1 - assumptions.lasting)
    return [quiet, *((1 - burst) * level + burst * lasting * level for level in assumptions.levels[1:])]
