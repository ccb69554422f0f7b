"""A node unlike its fleet is found, and healthy noise never is one."""

from __future__ import annotations

import math
import random
from collections.abc import Iterable

import pytest

from clusterctl.fleet.finding import Verdict
from clusterctl.fleet.quantity import Quantity
from clusterctl_burnin.fleet_stats import Bad, Compared, Metric, Sample, compare, shared_answers

RATE = Metric("rate", "TFLOP/s", Bad.LOW, 0.05, 0.0, "replace the GPU")
HEAT = Metric("heat", "°C", Bad.HIGH, 0.0, 8.0, "clean the filter")


def noise(chance: random.Random, kind: int) -> float:
    """Bell-shaped, skewed, heavy-tailed, in steps, and nearly all alike."""
    bell = chance.gauss(0, 1)
    return (
        100 + bell,
        100 * math.exp(0.02 * bell),
        100 + bell / math.sqrt(max(0.05, chance.gammavariate(2.5, 1) / 2.5)),
        float(round(100 + bell)),
        100.0 if chance.random() < 0.9 else 101.0,
    )[kind % 5]


def fleet(seed: int, nodes: int, metrics: int) -> list[Sample]:
    chance = random.Random(seed)
    kinds = [Metric(f"m{i:02d}", "u", Bad.LOW if i % 2 else Bad.HIGH, 0.05, 0.0, "repair it") for i in range(metrics)]
    return [
        Sample(f"n{node:03d}", metric, noise(chance, index), "one")
        for node in range(nodes)
        for index, metric in enumerate(kinds)
    ]


def plain(values: Iterable[float], metric: Metric = RATE, population: str = "one") -> list[Sample]:
    return [Sample(f"{population}{i:03d}", metric, value, population) for i, value in enumerate(values)]


def failed(compared: Compared) -> set[str]:
    return {name for name, found in compared.findings.items() if any(f.verdict is Verdict.FAIL for f in found)}


@pytest.mark.parametrize("seed", range(20))
def test_healthy_noise_fails_no_node(seed: int) -> None:
    """511 nodes, 40 metrics of five shapes: no FAIL in twenty fleets."""
    compared = compare(fleet(seed, 511, 40))
    assert compared.judged == 511 * 40
    assert not failed(compared)


@pytest.mark.parametrize("seed", range(5))
def test_one_gpu_ten_percent_slow_is_found(seed: int) -> None:
    """Of 4,088, among forty other metrics; the finding contains the distribution."""
    chance = random.Random(seed)
    gpus = [
        Sample(f"n{i // 8:03d}", RATE, chance.gauss(790, 8), "one", f"gpu {i % 8}", f"S{i}") for i in range(511 * 8)
    ]
    slow = gpus[1234]
    gpus[1234] = Sample(slow.node, RATE, 0.9 * 790, "one", slow.subject, slow.serial)
    compared = compare([*gpus, *fleet(seed, 511, 40)])
    assert failed(compared) == {slow.node}
    (finding,) = compared.findings[slow.node]
    assert (finding.check, finding.subject, finding.serial) == ("fleet_rate", slow.subject, slow.serial)
    assert "place 1 from the bad end of 4088 values of 511 nodes" in finding.cause
    assert str(finding.expected).startswith("about 7")
    assert finding.measured == Quantity(0.9 * 790, "TFLOP/s")
    assert (finding.remedy, finding.deterministic) == ("replace the GPU", False)


@pytest.mark.parametrize("seed", range(4))
def test_one_hot_gpu_is_found_among_whole_degrees(seed: int) -> None:
    """Temperatures come in whole degrees: rounding makes no heavy tail."""
    chance = random.Random(seed)
    gpus = [Sample(f"n{i // 8:03d}", HEAT, round(chance.gauss(33, 1.5)), "one", f"gpu {i % 8}") for i in range(4088)]
    gpus[2000] = Sample("n250", HEAT, 58, "one", "gpu 0")
    assert failed(compare(gpus)) == {"n250"}


def test_what_is_unlikely_and_too_small_to_matter_is_a_warning() -> None:
    """Twenty spreads below the others, and 2 % of the value."""
    values = [100 + 0.1 * random.Random(7).gauss(0, 1) * (i % 2) + 0.001 * i for i in range(60)]
    compared = compare(plain([*values, 98.0]))
    (finding,) = compared.findings["one060"]
    assert finding.verdict is Verdict.WARN
    assert "too little to matter" in finding.cause


def test_only_the_bad_direction_counts() -> None:
    """A GPU that is faster than its fleet, a part that is cooler."""
    chance = random.Random(3)
    fast = plain([*(chance.gauss(100, 1) for _ in range(100)), 150.0])
    cool = plain([*(chance.gauss(60, 1) for _ in range(100)), 20.0], HEAT)
    assert not compare([*fast, *cool]).findings
    assert failed(compare(plain([*(chance.gauss(60, 1) for _ in range(100)), 90.0], HEAT))) == {"one100"}


def test_values_in_steps() -> None:
    """Where nearly all are equal, one step is nothing, ten are."""
    alike = [40.0] * 95 + [41.0] * 5
    assert not compare(plain([*alike, 42.0], HEAT)).findings
    assert failed(compare(plain([*alike, 60.0], HEAT))) == {"one100"}


def test_where_all_are_equal_any_difference_is_unlikely() -> None:
    """Three GB/s more or less is a difference of kind; whether it fails is a matter of its size."""
    assert failed(compare(plain([*[100.0] * 50, 90.0]))) == {"one050"}
    (finding,) = compare(plain([*[100.0] * 50, 99.0])).findings["one050"]
    assert finding.verdict is Verdict.WARN


def test_populations_are_kept_apart() -> None:
    """Two SKUs, one half as fast: no node is an outlier; in one population they are reported as another kind."""
    chance = random.Random(5)
    quick, slow = ([chance.gauss(mean, 1) for _ in range(40)] for mean in (100, 50))
    assert not compare([*plain(quick, population="a"), *plain(slow, population="b")]).findings
    mixed = compare(plain([*quick, *slow[:8]]))
    assert len(mixed.findings) == 8
    assert not failed(mixed)
    assert all("another kind" in f.cause for found in mixed.findings.values() for f in found)


def test_too_few_nodes_are_not_judged_and_that_is_reported() -> None:
    """Nineteen nodes have no usual value; not-a-number is no value."""
    compared = compare(plain([*[100.0] * 18, 1.0]))
    assert (compared.findings, compared.judged) == ({}, 0)
    assert "19 nodes" in compared.unjudged[0].why
    nan = compare(plain([*[100.0] * 30, math.nan]))
    assert nan.judged == 30
    assert "1 values are no numbers" in nan.unjudged[0].why


ANSWER = Metric("answer", "reports", Bad.HIGH, 0.0, 1.0, "plug it in", yes_no=True)


@pytest.mark.parametrize(
    ("nodes", "yes", "odd"),
    [
        (3, 1, 0),
        (4, 1, 1),
        (4, 2, 0),
        (4, 4, 0),
        (8, 2, 2),
        (48, 1, 1),
        (48, 2, 2),
        (48, 3, 0),
        (511, 25, 25),
        (511, 26, 0),
    ],
)
def test_a_yes_is_odd_where_nearly_all_nodes_answer_no(nodes: int, yes: int, odd: int) -> None:
    """Of few nodes nothing is known; what too many share is usual. Each part is compared with the same part alone."""
    answers = plain([1.0] * yes + [0.0] * (nodes - yes), ANSWER)
    others = [Sample(f"x{i}", ANSWER, 1.0, "one", "other part") for i in range(nodes)]
    compared = compare([*answers, *others])
    assert failed(compared) == {f"one{i:03d}" for i in range(odd)}
    assert all(one.check == "fleet_answer" for found in compared.findings.values() for one in found)
    shared = shared_answers(answers)
    assert shared == (frozenset() if odd or nodes < 4 else {"node"})


def test_a_node_counts_once_by_its_last_answer() -> None:
    """A second burn-in does not make a population of one node."""
    answers = plain([0.0] * 3, ANSWER) + [Sample("one009", ANSWER, value, "one") for value in (1.0, 1.0, 0.0)]
    assert not compare(answers).findings
