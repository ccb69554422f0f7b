"""The answer of a hunt: bad parts, parts that it cannot distinguish yet, and what to run next."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from clusterctl_burnin.hunting.model import HuntPart, PartKind, Rail, Rules
from clusterctl_burnin.hunting.posterior import Posterior
from clusterctl_burnin.hunting.record import Record

MOST_UNMET = 0.05
"""The share of pairs that were in no run together from which on the answer asks for further rounds."""


@dataclass(frozen=True, slots=True)
class Culprit:
    """A part that is bad with `probability` (of the least sure of its rails). `rails` is (None,) for loads without."""

    part: HuntPart
    rails: tuple[Rail, ...]
    probability: float

    @property
    def host(self) -> tuple[str, ...]:
        """Return the name of the host; nothing for other parts."""
        return self.part.names if self.part.kind is PartKind.HOST else ()


@dataclass(frozen=True, slots=True)
class HuntAnswer:
    """`settled`: every failure is explained as surely as the rules want it, and every host was measured often enough.

    bad          parts to act on
    best         the most probable explanation, sure or not: every part in it, with its rail
    common       rails on which everything fails: no host is accused
    suspects     parts that cannot be distinguished yet, the most probable first
    proven       hosts that passed and are not suspected
    unmeasured   hosts of which nothing is known: they are not proven
    thin         hosts that were measured less often than the rules want: a fault that comes and goes may be missed
    gone         hosts that dropped out
    unmet        the share of all pairs of hosts that were in no run together: a bad path between them does not show
    advice       what to run next, or what to look at; empty where there is nothing to do
    """

    settled: bool
    bad: tuple[Culprit, ...]
    best: tuple[tuple[HuntPart, Rail], ...]
    common: tuple[Rail, ...]
    suspects: tuple[Culprit, ...]
    proven: tuple[str, ...]
    unmeasured: tuple[str, ...]
    thin: tuple[str, ...]
    dropped: tuple[str, ...]
    unmet: float
    advice: str


def answer(hosts: Sequence[str], record: Record, posteriors: Mapping[Rail, Posterior], rules: Rules) -> HuntAnswer:
    """Return what the record shows of the hosts, with the posterior of each rail."""
    found = _culprits(posteriors)
    bad = tuple(culprit for culprit in found if culprit.probability >= rules.sure)
    in_doubt = _in_doubt(posteriors, rules.sure)
    suspects = tuple(c for c in found if not in_doubt.isdisjoint((c.part, rail) for rail in c.rails))
    common = _common(posteriors, rules.sure)
    unmeasured, thin = _uncovered(hosts, record, rules.screening, _covered(bad))
    proven = () if common else _proven(hosts, record, _covered(bad).union(*(culprit.host for culprit in suspects)))
    unmet = _unmet(record, proven)
    left = _Open(suspects, common, unmeasured, thin, unmet if rules.widest else 0.0, proven=bool(proven))
    return HuntAnswer(
        settled=bool(record.rounds) and not any((in_doubt, unmeasured, thin)),
        bad=bad,
        best=_best(posteriors, known_bad=rules.known_bad),
        common=common,
        suspects=suspects,
        proven=proven,
        unmeasured=unmeasured,
        thin=thin,
        dropped=tuple(sorted(record.dropped)),
        unmet=unmet,
        advice=left.advice(),
    )


def _common(posteriors: Mapping[Rail, Posterior], sure: float) -> tuple[Rail, ...]:
    return tuple(rail for rail, posterior in posteriors.items() if posterior.common >= sure)


def _in_doubt(posteriors: Mapping[Rail, Posterior], sure: float) -> set[tuple[HuntPart, Rail]]:
    return {
        (part, rail) for rail, posterior in posteriors.items() for case in posterior.cases for part in case.open(sure)
    }


def _uncovered(
    hosts: Sequence[str], record: Record, screening: int, covered: Collection[str]
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the present hosts that were not measured, and those that were measured less often than `screening`."""
    measured = record.measured()
    counts = {name: measured.get(name, 0) for name in hosts if name not in record.dropped}
    thin = tuple(name for name, count in counts.items() if 0 < count < screening and name not in covered)
    return tuple(name for name, count in counts.items() if not count), thin


def _proven(hosts: Sequence[str], record: Record, accused: Collection[str]) -> tuple[str, ...]:
    passed, without = record.passed(), {*record.dropped, *accused}
    return tuple(name for name in hosts if passed.get(name) and name not in without)


def _unmet(record: Record, proven: Sequence[str]) -> float:
    """Return the share of the pairs of proven hosts that no measured run had together."""
    if len(proven) < 2:
        return 0.0
    bit = {name: 1 << index for index, name in enumerate(proven)}
    met = dict.fromkeys(proven, 0)
    for group in {run.group for rail in record.rails()[:1] for run in record.runs(rail)}:
        members = [name for name in group if name in bit]
        together = sum(bit[name] for name in members)
        for name in members:
            met[name] |= together
    pairs = sum((others | bit[name]).bit_count() - 1 for name, others in met.items()) // 2
    return 1 - pairs / math.comb(len(proven), 2)


def _covered(bad: Sequence[Culprit]) -> set[str]:
    """Return the hosts that are bad, or that a bad leaf keeps from being measured."""
    return {n for c in bad if c.part.kind in (PartKind.HOST, PartKind.LEAF) for n in c.part.names}


def _culprits(posteriors: Mapping[Rail, Posterior]) -> list[Culprit]:
    """Return each part once where it is equally sure on several rails, the most probable first; no common cause."""
    by_rail: dict[tuple[HuntPart, float], list[Rail]] = {}
    for rail, posterior in posteriors.items():
        for case in posterior.cases:
            for part, probability in case.parts.items():
                by_rail.setdefault((part, round(probability, 6)), []).append(rail)
    found = [
        Culprit(part, tuple(rails), probability)
        for (part, probability), rails in by_rail.items()
        if part.kind is not PartKind.ALL
    ]
    return sorted(found, key=lambda c: (-c.probability, c.part, str(c.rails)))


def _best(posteriors: Mapping[Rail, Posterior], *, known_bad: bool) -> tuple[tuple[HuntPart, Rail], ...]:
    """Return the parts of the most probable explanation, with their rails.

    `known_bad`: some part is known to be bad; where noise alone is most probable, the next explanation counts.
    """
    found = [(part, rail) for rail, b in posteriors.items() for case in b.cases for part in case.sets[0][0]]
    if known_bad and not found:
        found = _second(posteriors)
    return tuple(sorted(found, key=lambda item: (item[0], -1 if item[1] is None else item[1])))


def _second(posteriors: Mapping[Rail, Posterior]) -> list[tuple[HuntPart, Rail]]:
    """Return the second explanation of the case where it is nearest to the first."""
    others = [
        (probability / max(case.sets[0][1], 1e-9), sorted(parts), rail)
        for rail, posterior in posteriors.items()
        for case in posterior.cases
        for parts, probability in case.sets[1:2]
    ]
    if not others:
        return []
    _, parts, rail = min(others, key=lambda other: (-other[0], other[1], str(other[2])))
    return [(part, rail) for part in parts]


@dataclass(frozen=True, slots=True)
class _Open:
    """What is left open. Each method returns the advice for one kind of it, empty where there is none."""

    suspects: Sequence[Culprit]
    common: Sequence[Rail]
    unmeasured: Sequence[str]
    thin: Sequence[str]
    unmet: float
    proven: bool

    def advice(self) -> str:
        sentences = (self._common(), self._shared(), self._hosts(), self._pairs(), self._measured(), self._met())
        return "; ".join(filter(None, sentences))

    def _parts(self, *kinds: PartKind) -> list[HuntPart]:
        return sorted({culprit.part for culprit in self.suspects if culprit.part.kind in kinds})

    def _common(self) -> str:
        rails = ", ".join(f"rail {rail}" for rail in self.common if rail is not None)
        where = f" on {rails}" if rails else ""
        return f"all runs fail{where}: check switches, the load, its limits" if self.common else ""

    def _shared(self) -> str:
        leaves = [str(part) for part in self._parts(PartKind.LEAF, PartKind.UPLINK)]
        return f"run hosts within and across leaves once more, to decide on {_some(leaves)}" if leaves else ""

    def _hosts(self) -> str:
        hosts = [part.names[0] for part in self._parts(PartKind.HOST)]
        if hosts and not self.proven:
            return f"no host here is proven: run {_some(hosts)} each with proven hosts from elsewhere"
        return f"run {_some(hosts)} once more, each among proven hosts" if hosts else ""

    def _pairs(self) -> str:
        pairs = [" with ".join(part.names) for part in self._parts(PartKind.PAIR)]
        if not pairs or self._parts(PartKind.HOST):
            return ""
        return f"run {_some(pairs)} once more, each pair by itself"

    def _measured(self) -> str:
        unmeasured = f"find out why {_some(self.unmeasured)} could not be measured" if self.unmeasured else ""
        thin = f"run {_some(self.thin)} more often: too few runs to find a fault that comes and goes"
        return "; ".join(filter(None, (unmeasured, thin if self.thin else "")))

    def _met(self) -> str:
        if self.unmet <= MOST_UNMET:
            return ""
        return f"raise pair_meetings or widest_nodes: {self.unmet:.0%} of the pairs of hosts were in no run together"


def _some(names: Sequence[str], most: int = 8) -> str:
    rest = len(names) - most
    return ", ".join(names[:most]) + (f" and {rest} more" if rest > 0 else "")
