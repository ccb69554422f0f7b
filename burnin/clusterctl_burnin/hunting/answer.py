"""What a hunt has found, and what it cannot tell apart."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from clusterctl_burnin.hunting.model import Part, Rail, Rules
from clusterctl_burnin.hunting.planning import CLEAN
from clusterctl_burnin.hunting.posterior import Posterior
from clusterctl_burnin.hunting.record import Record


@dataclass(frozen=True, slots=True)
class Culprit:
    """A part that is bad with `probability` (of the least sure of its rails). `rails` is (None,) for loads without."""

    part: Part
    rails: tuple[Rail, ...]
    probability: float

    @property
    def is_path(self) -> bool:
        return len(self.part) == 2


@dataclass(frozen=True, slots=True)
class Answer:
    """`settled`: every case has an explanation that is as probable as the rules want it, and every host was measured.

    bad          parts to act on
    best         the likeliest explanation, whether sure or not: every part in it, with its rail
    common       rails on which everything goes wrong: none of the hosts is accused
    suspects     parts that cannot be told apart yet, likeliest first
    proven       hosts that passed and are not suspected of anything
    unmeasured   hosts of which nothing is known: they are not proven
    gone         hosts that dropped out
    probability  that the best explanations of all cases hold together (1 where nothing went wrong)
    advice       what would tell the suspects apart, or measure the unmeasured; empty where there is nothing to do
    """

    settled: bool
    bad: tuple[Culprit, ...]
    best: tuple[tuple[Part, Rail], ...]
    common: tuple[Rail, ...]
    suspects: tuple[Culprit, ...]
    proven: tuple[str, ...]
    unmeasured: tuple[str, ...]
    gone: tuple[str, ...]
    probability: float
    advice: str


def answer(hosts: Sequence[str], record: Record, beliefs: Mapping[Rail, Posterior], rules: Rules) -> Answer:
    common = tuple(rail for rail, belief in beliefs.items() if belief.common >= rules.sure)
    judged = {rail: belief for rail, belief in beliefs.items() if rail not in common}
    found = _culprits(judged)
    bad = tuple(c for c in found if c.probability >= rules.sure)
    certainties = [case.certainty for belief in judged.values() for case in belief.cases]
    certain = min(certainties, default=1.0) >= rules.sure
    suspects = () if certain else tuple(c for c in found if CLEAN < c.probability < rules.sure)
    named = {name for culprit in (*bad, *suspects) if not culprit.is_path for name in culprit.part}
    measured = record.measured()
    passed = {name for rail in beliefs for group in record.runs(rail)[0] for name in group}
    unmeasured = tuple(h for h in hosts if h not in record.gone and not measured.get(h))
    proven = passed - named - set(unmeasured) - record.gone.keys() if not common else set()
    return Answer(
        settled=certain and bool(record.rounds) and not unmeasured,
        bad=bad,
        best=_best(judged, somebody=rules.somebody),
        common=common,
        suspects=suspects,
        proven=tuple(sorted(proven)),
        unmeasured=unmeasured,
        gone=tuple(sorted(record.gone)),
        probability=math.prod(certainties),
        advice=_advice(suspects, common, unmeasured, len(proven)),
    )


def _culprits(beliefs: Mapping[Rail, Posterior]) -> list[Culprit]:
    """Each part once where it is equally sure on several rails; likeliest first."""
    by_rail: dict[tuple[Part, float], list[Rail]] = {}
    for rail, belief in beliefs.items():
        for case in belief.cases:
            for part, probability in case.parts.items():
                by_rail.setdefault((part, round(probability, 6)), []).append(rail)
    found = [Culprit(part, tuple(rails), probability) for (part, probability), rails in by_rail.items()]
    return sorted(found, key=lambda c: (-c.probability, c.part, str(c.rails)))


def _best(beliefs: Mapping[Rail, Posterior], *, somebody: bool) -> tuple[tuple[Part, Rail], ...]:
    """`somebody`: some part is known to be bad; where no case has one for its best, the one nearest to it counts."""
    found = [(part, rail) for rail, b in beliefs.items() for case in b.cases for part in case.sets[0][0]]
    if somebody and not found:
        others = [
            (probability / case.certainty, sorted(parts), rail)
            for rail, belief in beliefs.items()
            for case in belief.cases
            for parts, probability in case.sets[1:2]
        ]
        _, parts, rail = min(others, key=lambda o: (-o[0], o[1], str(o[2])), default=(0.0, [], None))
        found = [(part, rail) for part in parts]
    return tuple(sorted(found, key=lambda item: (item[0], -1 if item[1] is None else item[1])))


def _advice(suspects: Sequence[Culprit], common: Sequence[Rail], unmeasured: Sequence[str], proven: int) -> str:
    words = []
    if common:
        rails = ", ".join(f"rail {rail}" for rail in common if rail is not None)
        words.append(f"everything goes wrong{f' on {rails}' if rails else ''}: look at switches, the test, its limits")
    hosts = sorted({name for culprit in suspects if not culprit.is_path for name in culprit.part})
    paths = sorted(culprit.part for culprit in suspects if culprit.is_path)
    if hosts and not proven:
        words.append(f"nobody here is proven: run {_some(hosts)} each with proven hosts from elsewhere")
    elif hosts:
        words.append(f"run {_some(hosts)} once more, each among proven hosts")
    if paths and not hosts:
        words.append(f"run {_some([' with '.join(path) for path in paths])} once more, each pair by itself")
    if unmeasured:
        words.append(f"find out why {_some(unmeasured)} could not be measured")
    return "; ".join(words)


def _some(names: Sequence[str], most: int = 8) -> str:
    rest = len(names) - most
    return ", ".join(names[:most]) + (f" and {rest} more" if rest > 0 else "")
