"""How probable it is that a part is bad, after all that was measured on one rail (Bayes' rule over sets of parts).

A set S of bad parts explains a failed run with the probability 1 − (1 − f) ∏(1 − p) over the parts of S that are in it;
f is the noise of its round, p how often a bad part shows. Passed runs count for each part alone, so that only failed
runs connect parts: what shares none of them is judged apart, as a case of its own.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from clusterctl_burnin.hunting.evidence import HuntCandidate, HuntEvidence, explained, near
from clusterctl_burnin.hunting.model import SHARED, Assumptions, HuntPart, PartKind, Rail
from clusterctl_burnin.hunting.noise_levels import noise_of_runs
from clusterctl_burnin.hunting.record import HuntRun

BEAM = 12
MOST_BAD = 8
"""Bad parts in one case at most, and one more than runs failed; beyond them, noise."""
MOST_CANDIDATES = 64
"""So many candidates of a case at most are combined with others: those that explain most by themselves."""
NEGLIGIBLE = 14.0
"""A set with a weight e^9 times smaller than that of the best one is left out."""


@dataclass(frozen=True, slots=True)
class PosteriorCase:
    """Failed runs that share possible causes. `sets` and `parts` with their probabilities, best first.

    noise  how probable noise alone is in the round of each run
    shows  how often each part is assumed to fail a run if it is bad
    """

    runs: tuple[HuntRun, ...]
    noise: tuple[float, ...]
    sets: tuple[tuple[frozenset[HuntPart], float], ...]
    parts: Mapping[HuntPart, float]
    shows: Mapping[HuntPart, float]

    @property
    def noise_alone(self) -> float:
        return next((p for parts, p in self.sets if not parts), 0.0)

    def open(self, sure: float) -> tuple[HuntPart, ...]:
        """Return the parts in doubt, the most probable first: those that are not sure, without those of less than
        `1 - sure`, as long as these add up to no more than that for each failed run.

        What a bad leaf hides cannot be known before it is repaired.
        """
        unsure = self._unsure(sure)
        doubt, least = 0.0, 1 - sure
        while unsure and unsure[-1][1] <= least and doubt + unsure[-1][1] <= least * len(self.runs):
            doubt += unsure.pop()[1]
        return tuple(part for part, _ in unsure)

    def _unsure(self, sure: float) -> list[tuple[HuntPart, float]]:
        """Return the parts that are not sure, without those that a part that is sure hides."""
        certain = [part for part, p in self.parts.items() if p >= sure]
        if HuntPart(PartKind.ALL, ()) in certain:
            return []
        leaves = [part.names for part in certain if part.kind is PartKind.LEAF]
        hidden: set[str] = set().union(*leaves)
        return [(part, p) for part, p in self.parts.items() if p < sure and not _hides(hidden, part)]


def _hides(hidden: set[str], part: HuntPart) -> bool:
    """Return whether nothing can be known of the part, since hosts of it are hidden."""
    return part.kind not in SHARED and not hidden.isdisjoint(part.names)


@dataclass(frozen=True, slots=True)
class Posterior:
    """The cases of one rail."""

    cases: tuple[PosteriorCase, ...]

    @property
    def common(self) -> float:
        """How probable it is that a cause common to all runs is bad."""
        return max((p for c in self.cases for part, p in c.parts.items() if part.kind is PartKind.ALL), default=0.0)

    def of(self, part: HuntPart) -> float:
        return max((case.parts.get(part, 0.0) for case in self.cases), default=0.0)


def posterior(evidence: HuntEvidence, assumptions: Assumptions) -> Posterior:
    """Judge the runs of one rail."""
    if not evidence.failed:
        return Posterior(())
    found = evidence.candidates(assumptions)
    noise = noise_of_runs(evidence, found, assumptions)
    cases = _apart(len(noise), near(found, noise))
    return Posterior(tuple(_case(evidence, runs, its, noise) for runs, its in cases))


def given_bad(posteriors: Mapping[Rail, Posterior]) -> Mapping[Rail, Posterior]:
    """Return the same, where some part is known to be bad: noise alone, in all cases at once, is no explanation.

    E being the probability of that, an explanation with bad parts has P / (1 − E), one without (P − E) / (1 − E).
    """
    cases = [case for posterior in posteriors.values() for case in posterior.cases]
    noise = math.prod(case.noise_alone for case in cases)
    if not cases or noise >= 1:
        return posteriors
    return {
        rail: Posterior(tuple(_given(case, noise) for case in posterior.cases))
        for rail, posterior in posteriors.items()
    }


def _given(case: PosteriorCase, noise: float) -> PosteriorCase:
    left = 1 - noise
    sets = [(parts, (p if parts else max(0.0, p - noise)) / left) for parts, p in case.sets]
    sets.sort(key=lambda s: (-s[1], sorted(s[0])))
    return replace(case, sets=tuple(sets), parts={part: p / left for part, p in case.parts.items()})


def _apart(failed: int, found: Sequence[HuntCandidate]) -> Iterable[tuple[list[int], list[HuntCandidate]]]:
    """Return indices of failed runs that share candidates, with those candidates."""
    leader = list(range(failed))

    def lead(run: int) -> int:
        while leader[run] != run:
            leader[run] = run = leader[leader[run]]
        return run

    for candidate in found:
        for run in candidate.failed[1:]:
            leader[max(lead(run), lead(candidate.failed[0]))] = min(lead(run), lead(candidate.failed[0]))
    members: dict[int, list[int]] = defaultdict(list)
    for run in range(failed):
        members[lead(run)].append(run)
    its: dict[int, list[HuntCandidate]] = defaultdict(list)
    for candidate in found:
        its[lead(candidate.failed[0])].append(candidate)
    return [(runs, its[first]) for first, runs in sorted(members.items())]


def _case(
    evidence: HuntEvidence, members: Sequence[int], found: Sequence[HuntCandidate], noise: Sequence[float]
) -> PosteriorCase:
    parts = sorted({candidate.part for candidate in found}, key=lambda part: (part.kind, part.names, part.label))
    rank = {part: number for number, part in enumerate(parts)}
    scored = zip(explained(found, noise), (rank[candidate.part] for candidate in found), found, strict=True)
    ordered = sorted(scored, key=lambda s: (-s[0], s[1], s[2].silent))
    found, ranks = [candidate for *_, candidate in ordered], [number for _, number, _ in ordered]
    by_parts: dict[frozenset[int], float] = defaultdict(float)
    marginal: dict[int, float] = defaultdict(float)
    shown: dict[int, float] = defaultdict(float)
    for chosen, weight in _weights(found, noise, len(members)).items():
        by_parts[frozenset([ranks[index] for index in chosen])] += weight
        for index in chosen:
            marginal[ranks[index]] += weight
            shown[ranks[index]] += weight * (1 - found[index].silent)
    total = math.fsum(by_parts.values())
    sets = sorted(((its, weight / total) for its, weight in by_parts.items()), key=lambda s: (-s[1], sorted(s[0])))
    best_first = sorted(marginal.items(), key=lambda item: (-item[1], item[0]))
    return PosteriorCase(
        runs=tuple(evidence.failed[run] for run in members),
        noise=tuple(noise[run] for run in members),
        sets=tuple((frozenset([parts[number] for number in its]), p) for its, p in sets),
        parts={parts[number]: p / total for number, p in best_first},
        shows={parts[number]: shown[number] / p for number, p in best_first},
    )


def _weights(found: Sequence[HuntCandidate], noise: Sequence[float], runs: int) -> dict[frozenset[int], float]:
    """Return the weight of each set that counts, relative to the best one."""
    shared = [index for index, candidate in enumerate(found) if candidate.part.kind in SHARED]
    logs = _weigh(found, noise, runs, ())
    if shared:
        logs |= _weigh(found, noise, runs, shared)
    best = max(logs.values())
    return {chosen: math.exp(log - best) for chosen, log in logs.items() if log > best - NEGLIGIBLE}


_State = tuple[float, dict[int, float]]
"""Log weight of a set, and per failed run the probability that nothing in the set shows there (1 where untouched)."""
_Beam = Sequence[tuple[frozenset[int], _State]]


def _weigh(
    found: Sequence[HuntCandidate], noise: Sequence[float], runs: int, first: Sequence[int]
) -> dict[frozenset[int], float]:
    """Return the log weight, against noise alone, of every set worth a look, grown part by part from the best ones.

    found  the candidates that explain most by themselves first
    first  grow from these, shared parts; from nothing and without shared parts where there are none. Both are needed: a
           leaf explains more than any host by itself, and less than several hosts together
    """
    start: _State = (0.0, {})
    nothing: frozenset[int] = frozenset()
    beam: _Beam = [(frozenset({index}), _with(start, found[index], noise)) for index in first] or [(nothing, start)]
    weights = {chosen: state[0] for chosen, state in beam}
    usable = [index for index, candidate in enumerate(found) if first or candidate.part.kind not in SHARED]
    for _ in range(min(MOST_BAD, runs + 1)):
        grown = _grown(beam, found, usable, noise)
        weights |= {chosen: state[0] for chosen, state in grown.items()}
        beam = _best(grown, max(weights.values()) - NEGLIGIBLE)
        usable = usable[:MOST_CANDIDATES]
    return weights


def _best(grown: Mapping[frozenset[int], _State], least: float) -> _Beam:
    """Return the sets of the largest weights, above `least`."""
    kept = [(chosen, state) for chosen, state in grown.items() if state[0] > least]
    return sorted(kept, key=lambda item: (-item[1][0], sorted(item[0])))[:BEAM]


def _grown(
    beam: _Beam, found: Sequence[HuntCandidate], usable: Sequence[int], noise: Sequence[float]
) -> dict[frozenset[int], _State]:
    """Return the sets of the beam, each with one more part."""
    grown: dict[frozenset[int], _State] = {}
    for chosen, state in beam:
        taken = {found[index].part for index in chosen}
        for index in usable:
            larger = chosen | {index}
            if found[index].part not in taken and larger not in grown:
                grown[larger] = _with(state, found[index], noise)
    return grown


def _with(state: _State, candidate: HuntCandidate, noise: Sequence[float]) -> _State:
    weight, silent = state
    changed = dict(silent)
    weight += candidate.weight
    for run in candidate.failed:
        quiet = 1 - noise[run]
        before = silent.get(run, 1.0)
        after = before * candidate.silent
        weight += math.log((1 - quiet * after) / (1 - quiet * before))
        changed[run] = after
    return weight, changed
