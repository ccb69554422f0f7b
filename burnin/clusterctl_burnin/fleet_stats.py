"""Nodes that keep every limit and are yet unlike their own fleet: robust, one-sided, the false discovery rate held.

Per metric and population: distance from the median towards the bad side, in units of a robust spread; the tail of
Student's t, as heavy as that of the good side; and over all metrics and nodes together the procedure of Benjamini and
Yekutieli, which holds whatever depends on what (https://doi.org/10.1214/aos/1013699998). What is unlikely but too small
to matter is a warning.
"""

from __future__ import annotations

import enum
import itertools
import math
import statistics
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from clusterctl.fleet.finding import Finding, Verdict
from clusterctl.fleet.finding_code import Code
from clusterctl.fleet.quantity import Quantity, exactly, figure

LEAST_NODES = 20
FALSE_DISCOVERIES = 0.001
"""Of the nodes that are found unlike their fleet, at most this share is so by chance."""
SECOND_POPULATION = 0.05
"""Where more of a population are found than this, they are not outliers but another kind of node."""
ENOUGH_FOR_TAILS = 200
BEYOND = 2.0
"""Only what is so many times as far out as the good side ever is can fail: healthy values stray on both sides."""
_FREEDOMS = (200.0, 60.0, 40.0, 30.0, 25.0, 20.0, 16.0, 13.0, 11.0, 9.0, 8.0, 7.0, 6.0, 5.0, 4.0, 3.0, 2.0)
_GAUSS = statistics.NormalDist()
_MAD_TO_SIGMA = 1.4826
_MAD_EFFICIENCY = 0.37
"""The MAD of n values shows as much of the spread as the standard deviation of 0.37 n
(https://doi.org/10.1080/01621459.1993.10476408)."""


class Bad(enum.Enum):
    """Which way a metric is bad."""

    LOW = -1
    HIGH = 1


@dataclass(frozen=True, slots=True)
class Metric:
    """What is compared. A distance from the median matters from `share` of it on (0.05: 5 %), or from `least`, in the
    metric's unit, whichever is more. `yes_no`: values are 0 and 1 (bad), and a part is compared with the same part of
    other nodes.
    """

    name: str
    unit: str
    bad: Bad
    share: float
    least: float
    remedy: str
    yes_no: bool = False


@dataclass(frozen=True, slots=True)
class Sample:
    """One value of one part of one node. Only samples of one `population` (SKU, switch tier) are compared."""

    node: str
    metric: Metric
    value: float
    population: str
    subject: str = "node"
    serial: str = ""


@dataclass(frozen=True, slots=True)
class Distribution:
    """Of one metric in one population. `spread` is in the metric's unit, as a standard deviation would be; `reach`: how
    far from the median the good side goes (but for its last value, where there are many).
    """

    nodes: int
    values: int
    median: float
    spread: float
    reach: float


@dataclass(frozen=True, slots=True)
class Unjudged:
    """A metric that was not compared, and why: it proves no node healthy."""

    metric: str
    population: str
    why: str


@dataclass(frozen=True, slots=True)
class Compared:
    """Findings by node, only of what stands out; and what could not be compared."""

    findings: Mapping[str, tuple[Finding, ...]]
    unjudged: tuple[Unjudged, ...]
    judged: int


@dataclass(frozen=True, slots=True)
class _Place:
    sample: Sample
    distribution: Distribution
    rank: int
    chance: float

    @property
    def distance(self) -> float:
        """From the median, towards the bad side."""
        return (self.sample.value - self.distribution.median) * self.sample.metric.bad.value

    @property
    def matters(self) -> bool:
        metric = self.sample.metric
        usual = self.distribution
        return self.distance >= max(metric.least, metric.share * abs(usual.median), BEYOND * usual.reach)


def compare(samples: Iterable[Sample]) -> Compared:
    """Hold every sample against its population."""
    groups: dict[tuple[str, str], list[Sample]] = defaultdict(list)
    answers: list[Sample] = []
    for sample in samples:
        (answers if sample.metric.yes_no else groups[sample.metric.name, sample.population]).append(sample)
    places: list[_Place] = []
    unjudged: list[Unjudged] = []
    for (metric, population), found in sorted(groups.items()):
        finite = [sample for sample in found if math.isfinite(sample.value)]
        if len(finite) < len(found):
            unjudged.append(Unjudged(metric, population, f"{len(found) - len(finite)} values are no numbers"))
        nodes = len({sample.node for sample in finite})
        if nodes < LEAST_NODES:
            why = f"{nodes} nodes report it; a comparison needs {LEAST_NODES}"
            unjudged.append(Unjudged(metric, population, why))
        else:
            places += _places(finite, nodes)
    findings: dict[str, list[Finding]] = defaultdict(list)
    standing_out = _discoveries(places)
    several = _second_populations(standing_out)
    for place in standing_out:
        findings[place.sample.node].append(_finding(place, one_of_many=_kind(place) in several))
    for sample, nodes in _odd_answers(answers):
        findings[sample.node].append(_odd_finding(sample, nodes))
    return Compared({node: tuple(f) for node, f in sorted(findings.items())}, tuple(unjudged), len(places))


LEAST_ALIKE = 4
"""Nodes; of fewer it is unknown which answer is the odd one."""


def shared_answers(samples: Iterable[Sample]) -> frozenset[str]:
    """Return the subjects whose yes is usual: of half of the nodes, or of too many to be odd. Of one metric and SKU."""
    return frozenset(one.subject for parts in _by_part(samples) if not _is_odd(parts) for one in parts if one.value)


def _odd_answers(samples: Iterable[Sample]) -> Iterator[tuple[Sample, int]]:
    """Yield each yes of a part that is a no in nearly all nodes, and the number of nodes."""
    for parts in _by_part(samples):
        if _is_odd(parts):
            yield from ((one, len(parts)) for one in parts if one.value)


def _by_part(samples: Iterable[Sample]) -> Iterator[list[Sample]]:
    """Yield the last sample of each node for each part that enough nodes have."""
    parts: dict[tuple[str, str, str], dict[str, Sample]] = defaultdict(dict)
    for one in samples:
        parts[one.metric.name, one.population, one.subject][one.node] = one
    yield from (list(nodes.values()) for _, nodes in sorted(parts.items()) if len(nodes) >= LEAST_ALIKE)


def _is_odd(parts: Sequence[Sample]) -> bool:
    yes = sum(bool(one.value) for one in parts)
    return yes * 2 < len(parts) and yes <= max(2, SECOND_POPULATION * len(parts))


def _odd_finding(sample: Sample, nodes: int) -> Finding:
    return Finding(
        check=f"fleet_{sample.metric.name}",
        verdict=Verdict.FAIL,
        code=Code.UNLIKE_FLEET,
        subject=sample.subject,
        cause=f"unlike the same part of nearly all of {nodes} nodes ({sample.population})",
        measured=Quantity(sample.value, sample.metric.unit),
        expected=exactly(0, sample.metric.unit),
        remedy=sample.metric.remedy,
        serial=sample.serial,
        deterministic=False,
    )


def _places(samples: Sequence[Sample], nodes: int) -> list[_Place]:
    towards_bad = samples[0].metric.bad.value
    ordered = sorted(samples, key=lambda s: (-s.value * towards_bad, s.node, s.subject))
    values = [sample.value for sample in ordered]
    median = statistics.median(values)
    farthest = -2 if len(values) >= ENOUGH_FOR_TAILS else -1
    reach = sorted((median - value) * towards_bad for value in values)[farthest]
    distribution = Distribution(nodes, len(values), median, _spread(values, median, towards_bad), reach)
    freedom = min(max(1.0, _MAD_EFFICIENCY * len(values) - 1), _tail_freedom(values, median, towards_bad))
    return [
        _Place(sample, distribution, rank, _tail((sample.value - median) * towards_bad, distribution.spread, freedom))
        for rank, sample in enumerate(ordered, 1)
    ]


def _spread(values: Sequence[float], median: float, towards_bad: int) -> float:
    """Return the largest of three: the MAD; the far end of the good side, where tails are heavy; and one step of a
    value that comes in steps. What is bad about a few of them reaches none of the three.
    """
    deviations = [abs(value - median) for value in values]
    count = len(values)
    kth = 1 + count // 100
    good = sorted((median - value) * towards_bad for value in values)
    far = good[-kth] / _GAUSS.inv_cdf(1 - kth / (count + 1))
    return max(_MAD_TO_SIGMA * statistics.median(deviations), far, _step(values))


def _tail_freedom(values: Sequence[float], median: float, towards_bad: int) -> float:
    """Return the weight of the tails, as Student's degrees of freedom, by the good side: where healthy values stray
    far, so may those on the bad side. A rounded value may be half a step nearer. Too few values show nothing of tails.
    """
    middle = statistics.median(abs(value - median) for value in values)
    if len(values) < ENOUGH_FOR_TAILS or middle == 0:
        return math.inf
    kth = 1 + len(values) // 100
    good = sorted((median - value) * towards_bad for value in values)
    far = (good[-kth] - _step(values) / 2) / middle
    edge, quarter = _GAUSS.inv_cdf(1 - kth / (len(values) + 1)), _GAUSS.inv_cdf(0.75)
    return next((f for f in _FREEDOMS if _student(edge, f) / _student(quarter, f) >= far), _FREEDOMS[-1])


def _student(z: float, freedom: float) -> float:
    """Return the value of Student's t that is as far out as `z` of a normal one: Wallace's approximation, inverted."""
    near = z * (8 * freedom + 3) / (8 * freedom + 1)
    return math.sqrt(freedom * math.expm1(near * near / freedom))


def _step(values: Sequence[float]) -> float:
    """Return the smallest distance between neighbours that each occur again; 0 where hardly any value does."""
    repeated = sorted(value for value, times in Counter(values).items() if times > 1)
    if len(set(values)) * 2 > len(values):
        return 0.0
    return min((b - a for a, b in itertools.pairwise(repeated)), default=0.0)


def _tail(distance: float, spread: float, freedom: float) -> float:
    """Return the chance of a value at least so far out: Student's t, approximated (Wallace, see `_student`)."""
    if distance <= 0:
        return 1.0
    if spread == 0:
        return 0.0
    t = distance / spread
    z = math.sqrt(freedom * math.log1p(t * t / freedom)) * (8 * freedom + 1) / (8 * freedom + 3)
    return math.erfc(z / math.sqrt(2)) / 2


def _discoveries(places: Sequence[_Place]) -> list[_Place]:
    count = len(places)
    if not count:
        return []
    dependence = math.log(count) + 0.5772 + 1 / (2 * count)
    ordered = sorted(places, key=lambda place: (place.chance, place.sample.node, place.sample.metric.name))
    last = 0
    for rank, place in enumerate(ordered, 1):
        if place.chance <= FALSE_DISCOVERIES * rank / (count * dependence):
            last = rank
    return ordered[:last]


def _kind(place: _Place) -> tuple[str, str]:
    return place.sample.metric.name, place.sample.population


def _second_populations(found: Sequence[_Place]) -> frozenset[tuple[str, str]]:
    """Return the places with so many outliers that these are a kind of their own."""
    nodes: dict[tuple[str, str], set[str]] = defaultdict(set)
    for place in found:
        nodes[_kind(place)].add(place.sample.node)
    of = {_kind(place): place.distribution.nodes for place in found}
    return frozenset(kind for kind, names in nodes.items() if len(names) > max(2, SECOND_POPULATION * of[kind]))


def _finding(place: _Place, *, one_of_many: bool) -> Finding:
    sample, usual = place.sample, place.distribution
    metric = sample.metric
    fails = place.matters and not one_of_many
    cause = (
        f"{'lower' if metric.bad is Bad.LOW else 'higher'} than its fleet's: place {place.rank} from the bad end of "
        f"{usual.values} values of {usual.nodes} nodes ({sample.population}), by chance in {place.chance:.1g} of cases"
    )
    if one_of_many:
        cause += "; so many nodes are like it that they seem to be another kind"
        remedy = "find out what these nodes have in common (SKU, firmware, switch tier, inlet air)"
    else:
        cause += "" if place.matters else "; too little to matter"
        remedy = metric.remedy
    return Finding(
        check=f"fleet_{metric.name}",
        verdict=Verdict.FAIL if fails else Verdict.WARN,
        code=Code.ANOTHER_POPULATION if one_of_many else Code.UNLIKE_FLEET,
        subject=sample.subject,
        cause=cause,
        measured=Quantity(sample.value, metric.unit),
        expected=f"about {Quantity(usual.median, metric.unit)}, spread {figure(usual.spread)}",
        remedy=remedy,
        serial=sample.serial,
        deterministic=False,
    )
