"""What a hunt has found, what it cannot tell apart, and what to run next."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from clusterctl_burnin.hunting.model import Part, PartKind, Rail, Rules
from clusterctl_burnin.hunting.posterior import Posterior
from clusterctl_burnin.hunting.record import Record

MOST_UNMET = 0.05
"""The share of pairs that were in no run together from which on the answer asks for further rounds."""


@dataclass(frozen=True, slots=True)
class Culprit:
    """A part that is bad with `probability` (of the least sure of its rails). `rails` is (None,) for loads without."""

    part: Part
    rails: tuple[Rail, ...]
    probability: float


@dataclass(frozen=True, slots=True)
class Answer:
    """`settled`: every failure is explained as surely as the rules want it, and every host was measured often enough.

    bad          parts to act on
    best         the most probable explanation, sure or not: every part in it, with its rail
    common       rails on which everything fails: no host is accused
    suspects     parts that cannot be told apart yet, the most probable first
    proven       hosts that passed and are not suspected
    unmeasured   hosts of which nothing is known: they are not proven
    thin         hosts that were measured less often than the rules want: a fault that comes and goes may be missed
    gone         hosts that dropped out
    unmet        the share of all pairs of hosts that were in no run together: a bad path between them does not show
    advice       what to run next, or what to look at; empty where there is nothing to do
    """

    settled: bool
    bad: tuple[Culprit, ...]
    best: tuple[tuple[Part, Rail], ...]
    common: tuple[Rail, ...]
    suspects: tuple[Culprit, ...]
    proven: tuple[str, ...]
    unmeasured: tuple[str, ...]
    thin: tuple[str, ...]
    gone: tuple[str, ...]
    unmet: float
    advice: str


def answer(hosts: Sequence[str], record: Record, beliefs: Mapping[Rail, Posterior], rules: Rules) -> Answer:
    common = tuple(rail for rail, belief in beliefs.items() if belief.common >= rules.sure)
    found = [culprit for culprit in _culprits(beliefs) if culprit.part.kind is not PartKind.ALL]
    bad = tuple(c for c in found if c.probability >= rules.sure)
    open_parts = {(part, rail) for rail, b in beliefs.items() for case in b.cases for part in case.open(rules.sure)}
    suspects = tuple(c for c in found if any((c.part, rail) in open_parts for rail in c.rails))
    covered = _covered(bad)
    measured, passed = record.measured(), record.passed()
    present = [name for name in hosts if name not in record.gone]
    unmeasured = tuple(name for name in present if not measured.get(name))
    thin = tuple(n for n in present if 0 < measured.get(n, 0) < rules.screening and n not in covered)
    suspected = {culprit.part.names[0] for culprit in suspects if culprit.part.kind is PartKind.HOST}
    proven = () if common else tuple(n for n in present if passed.get(n) and n not in covered and n not in suspected)
    return Answer(
        settled=bool(record.rounds) and not open_parts and not unmeasured and not thin,
        bad=bad,
        best=_best(beliefs, somebody=rules.somebody),
        common=common,
        suspects=suspects,
        proven=proven,
        unmeasured=unmeasured,
        thin=thin,
        gone=tuple(sorted(record.gone)),
        unmet=(unmet := _unmet(record, proven)),
        advice=_advice(_Open(suspects, common, unmeasured, thin, unmet if rules.widest else 0.0), proven=bool(proven)),
    )


def _unmet(record: Record, proven: Sequence[str]) -> float:
    """Return the share of the pairs of proven hosts that no measured run had together."""
    good = {*proven}
    met: set[tuple[str, str]] = set()
    for group in {run.group for rail in record.rails()[:1] for run in record.runs(rail)}:
        met.update(itertools.combinations([name for name in group if name in good], 2))
    return 1 - len(met) / math.comb(len(good), 2) if len(good) > 1 else 0.0


def _covered(bad: Sequence[Culprit]) -> set[str]:
    """Return the hosts that are bad, or that a bad leaf keeps from being measured."""
    return {n for c in bad if c.part.kind in (PartKind.HOST, PartKind.LEAF) for n in c.part.names}


def _culprits(beliefs: Mapping[Rail, Posterior]) -> list[Culprit]:
    """Return each part once where it is equally sure on several rails; the most probable first."""
    by_rail: dict[tuple[Part, float], list[Rail]] = {}
    for rail, belief in beliefs.items():
        for case in belief.cases:
            for part, probability in case.parts.items():
                by_rail.setdefault((part, round(probability, 6)), []).append(rail)
    found = [Culprit(part, tuple(rails), probability) for (part, probability), rails in by_rail.items()]
    return sorted(found, key=lambda c: (-c.probability, c.part, str(c.rails)))


def _best(beliefs: Mapping[Rail, Posterior], *, somebody: bool) -> tuple[tuple[Part, Rail], ...]:
    """`somebody`: some part is known to be bad; where no case has one in its best set, the one nearest to it counts."""
    found = [(part, rail) for rail, b in beliefs.items() for case in b.cases for part in case.sets[0][0]]
    if somebody and not found:
        others = [
            (probability / max(case.sets[0][1], 1e-9), sorted(parts), rail)
            for rail, belief in beliefs.items()
            for case in belief.cases
            for parts, probability in case.sets[1:2]
        ]
        _, parts, rail = min(others, key=lambda o: (-o[0], o[1], str(o[2])), default=(0.0, [], None))
        found = [(part, rail) for part in parts]
    return tuple(sorted(found, key=lambda item: (item[0], -1 if item[1] is None else item[1])))


@dataclass(frozen=True, slots=True)
class _Open:
    """What is left open."""

    suspects: Sequence[Culprit]
    common: Sequence[Rail]
    unmeasured: Sequence[str]
    thin: Sequence[str]
    unmet: float


def _advice(left: _Open, *, proven: bool) -> str:
    sentences, suspects = [], left.suspects
    if left.common:
        rails = ", ".join(f"rail {rail}" for rail in left.common if rail is not None)
        sentences.append(f"all runs fail{f' on {rails}' if rails else ''}: check switches, the load, its limits")
    hosts = sorted({c.part.names[0] for c in suspects if c.part.kind is PartKind.HOST})
    pairs = sorted(c.part.names for c in suspects if c.part.kind is PartKind.PAIR)
    leaves = sorted(str(c.part) for c in suspects if c.part.kind in (PartKind.LEAF, PartKind.UPLINK))
    if leaves:
        sentences.append(f"run hosts within and across leaves once more, to decide on {_some(leaves)}")
    if hosts and not proven:
        sentences.append(f"no host here is proven: run {_some(hosts)} each with proven hosts from elsewhere")
    elif hosts:
        sentences.append(f"run {_some(hosts)} once more, each among proven hosts")
    if pairs and not hosts:
        sentences.append(f"run {_some([' with '.join(ends) for ends in pairs])} once more, each pair by itself")
    if left.unmeasured:
        sentences.append(f"find out why {_some(left.unmeasured)} could not be measured")
    if left.thin:
        sentences.append(f"run {_some(left.thin)} more often: too few runs to find a fault that comes and goes")
    if left.unmet > MOST_UNMET:
        sentences.append(f"raise group_rounds: {left.unmet:.0%} of the pairs of hosts were in no run together")
    return "; ".join(sentences)


def _some(names: Sequence[str], most: int = 8) -> str:
    rest = len(names) - most
    return ", ".join(names[:most]) + (f" and {rest} more" if rest > 0 else "")
