"""How probable it is that a part is bad, after all that was measured on one rail (Bayes' rule over sets of parts).

A set S of bad parts explains a run g that went wrong with the probability 1 − (1 − f) ∏(1 − p) over the parts of S that
are in g; f is the rate of false alarms, p how often a bad part shows. Runs that passed speak of each part by itself, so
only runs that went wrong tie parts together: what shares none of them is judged apart, as a case of its own.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from clusterctl_burnin.hunting.candidates import Candidate, Runs, candidates
from clusterctl_burnin.hunting.model import Group, Noise, Part, Rail

BEAM = 24
MOST_BAD = 8
"""Bad parts in one case at most, and one more than runs went wrong; beyond them, false alarms."""
NEGLIGIBLE = 10.0
"""A set whose weight is e^10 times smaller than the best one's is left out."""


@dataclass(frozen=True, slots=True)
class Case:
    """Runs that went wrong and share possible culprits. `sets` and `parts` with their probabilities, best first."""

    runs: tuple[Group, ...]
    sets: tuple[tuple[frozenset[Part], float], ...]
    parts: Mapping[Part, float]
    evidence: float

    @property
    def certainty(self) -> float:
        """Of the best set."""
        return self.sets[0][1]

    @property
    def nobody(self) -> float:
        """That it is false alarms alone."""
        return next((p for parts, p in self.sets if not parts), 0.0)


@dataclass(frozen=True, slots=True)
class Posterior:
    """The cases of one rail, and how probable it is that no host is to blame but something common."""

    cases: tuple[Case, ...]
    common: float

    def of(self, part: Part) -> float:
        return max((case.parts.get(part, 0.0) for case in self.cases), default=0.0)


def believe(passed: Sequence[Group], failed: Sequence[Group], hosts: int, noise: Noise) -> Posterior:
    """Judge the runs of one rail; `hosts`: how many there are in all."""
    runs = Runs(tuple(passed), tuple(failed))
    found = candidates(runs, hosts, noise)
    cases = tuple(_case(runs, members, its, noise) for members, its in _apart(len(failed), found))
    return Posterior(cases, _common(runs, cases, noise))


def conditioned(beliefs: Mapping[Rail, Posterior]) -> Mapping[Rail, Posterior]:
    """The same, where it is known that some part is bad: false alarms alone, in all cases at once, are no explanation.

    E being the probability of that, an explanation with bad parts has P / (1 − E), one without (P − E) / (1 − E).
    """
    cases = [case for belief in beliefs.values() for case in belief.cases]
    nobody = math.prod(case.nobody for case in cases)
    if not cases or nobody >= 1:
        return beliefs
    return {
        rail: replace(belief, cases=tuple(_given_somebody(case, nobody) for case in belief.cases))
        for rail, belief in beliefs.items()
    }


def _given_somebody(case: Case, nobody: float) -> Case:
    left = 1 - nobody
    sets = [(parts, (p if parts else max(0.0, p - nobody)) / left) for parts, p in case.sets]
    sets.sort(key=lambda s: (-s[1], sorted(s[0])))
    return replace(case, sets=tuple(sets), parts={part: p / left for part, p in case.parts.items()})


def _apart(failed: int, found: Sequence[Candidate]) -> Iterable[tuple[list[int], list[Candidate]]]:
    """Indices of failed runs that share candidates, with those candidates."""
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
    its: dict[int, list[Candidate]] = defaultdict(list)
    for candidate in found:
        its[lead(candidate.failed[0])].append(candidate)
    return [(runs, its[first]) for first, runs in sorted(members.items())]


def _case(runs: Runs, members: Sequence[int], found: Sequence[Candidate], noise: Noise) -> Case:
    weights = _weigh(members, found, noise.false_alarm)
    best = max(weights.values())
    by_parts: dict[frozenset[Part], float] = defaultdict(float)
    for chosen, weight in weights.items():
        if weight > best - NEGLIGIBLE:
            by_parts[frozenset(found[index].part for index in chosen)] += math.exp(weight - best)
    total = math.fsum(by_parts.values())
    sets = sorted(((parts, weight / total) for parts, weight in by_parts.items()), key=lambda s: (-s[1], sorted(s[0])))
    marginal: dict[Part, float] = defaultdict(float)
    for parts, probability in sets:
        for part in parts:
            marginal[part] += probability
    ordered = dict(sorted(marginal.items(), key=lambda item: (-item[1], item[0])))
    return Case(tuple(runs.failed[run] for run in members), tuple(sets), ordered, best + math.log(total))


_State = tuple[float, dict[int, float]]
"""Log weight of a set, and per failed run the probability that nothing in the set shows there (1 where untouched)."""


def _weigh(members: Sequence[int], found: Sequence[Candidate], false_alarm: float) -> dict[frozenset[int], float]:
    """The log weight of every set worth a look, grown part by part from the best ones."""
    nothing: frozenset[int] = frozenset()
    start = len(members) * math.log(false_alarm)
    weights = {nothing: start}
    beam: list[tuple[frozenset[int], _State]] = [(nothing, (start, {}))]
    for _ in range(min(MOST_BAD, len(members) + 1)):
        grown: dict[frozenset[int], _State] = {}
        for chosen, state in beam:
            taken = {found[index].part for index in chosen}
            for index, candidate in enumerate(found):
                larger = chosen | {index}
                if candidate.part not in taken and larger not in grown:
                    grown[larger] = _with(state, candidate, false_alarm)
        weights |= {chosen: state[0] for chosen, state in grown.items()}
        best = max(weights.values())
        beam = [(chosen, state) for chosen, state in grown.items() if state[0] > best - NEGLIGIBLE]
        beam = sorted(beam, key=lambda item: (-item[1][0], sorted(item[0])))[:BEAM]
        if not beam:
            break
    return weights


def _with(state: _State, candidate: Candidate, false_alarm: float) -> _State:
    weight, silent = state
    changed = dict(silent)
    weight += candidate.weight
    for run in candidate.failed:
        before = silent.get(run, 1.0)
        after = before * candidate.silent
        weight += math.log(1 - (1 - false_alarm) * after) - math.log(1 - (1 - false_alarm) * before)
        changed[run] = after
    return weight, changed


def _common(runs: Runs, cases: Sequence[Case], noise: Noise) -> float:
    if not runs.failed:
        return 0.0
    shown = len(runs.failed) * math.log(noise.steady) + len(runs.passed) * math.log(1 - noise.steady)
    everything = math.log(noise.common) + shown
    hosts = sum(case.evidence for case in cases) + len(runs.passed) * math.log(1 - noise.false_alarm)
    return 1 / (1 + math.exp(max(-700.0, min(700.0, hosts - everything))))
