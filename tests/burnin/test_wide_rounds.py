"""Wide rounds deal hosts so that each two are in one group equally often."""

from __future__ import annotations

import itertools
from collections import Counter
from dataclasses import replace

import pytest

from benchmarks.hunt import WORLDS, fleets, hunted
from clusterctl_burnin.hunting.hunt import Hunt
from clusterctl_burnin.hunting.model import HuntResult, Rules
from clusterctl_burnin.hunting.wide_rounds import MOST_ROUNDS, plane, wide_rounds
from clusterctl_burnin.loads.model import TrialOutcome

RULES = Rules(least=4, most=4, widest=64, meetings=2, rounds=99)


def names(count: int) -> tuple[str, ...]:
    return tuple(f"n{index:04d}" for index in range(count))


@pytest.mark.parametrize("count", [2, 64, 65, 127, 130, 257, 310, 511, 513, 700, 1000])
def test_each_pass_has_every_two_hosts_in_one_group(count: int) -> None:
    """At least once, of one block more often; no group is too large, no host is in two groups of a round."""
    dealt = plane(names(count), 64)
    assert dealt is not None
    for start in (0, dealt.rounds):
        met: set[tuple[str, str]] = set()
        for number in range(start, start + dealt.rounds):
            groups = dealt.groups(number)
            assert sorted(name for group in groups for name in group) == list(names(count))
            assert max(map(len, groups)) <= 64
            met.update(pair for group in groups for pair in itertools.combinations(group, 2))
        assert len(met) == count * (count - 1) // 2


def test_hosts_of_different_blocks_meet_once_in_a_pass() -> None:
    """512 hosts are 64 blocks of 8: nine rounds, and no schedule of groups of 64 has fewer."""
    dealt = plane(names(512), 64)
    assert dealt is not None
    times = Counter(p for n in range(9) for group in dealt.groups(n) for p in itertools.combinations(group, 2))
    assert dealt.rounds == 9
    assert Counter(times.values()) == {1: 64 * 63 // 2 * 64, 9: 64 * 28}


def test_the_second_pass_has_other_groups() -> None:
    """What failed in the first pass is then distinguished by few common hosts."""
    dealt = plane(names(511), 64)
    assert dealt is not None
    first, second = ([{*group} for n in range(start, start + 9) for group in dealt.groups(n)] for start in (0, 9))
    assert max(len(one & other) for one in first for other in second) <= 24


@pytest.mark.parametrize(
    ("count", "rules", "wanted"),
    [
        (511, RULES, 18),
        (48, RULES, 2),
        (7, RULES, 0),
        (511, replace(RULES, meetings=0), 0),
        (511, replace(RULES, widest=4), 0),
        (1000, RULES, 34),
        (4000, RULES, MOST_ROUNDS),
        (9000, RULES, 0),
    ],
)
def test_how_many_wide_rounds_are_wanted(count: int, rules: Rules, wanted: int) -> None:
    """None for few hosts, without the setting, or where no plane has groups that small."""
    assert wide_rounds(names(count), rules) == wanted


def test_a_healthy_fleet_has_met_when_the_hunt_is_over() -> None:
    """Each two of 130 hosts, and the hunt then ends."""
    hunt = Hunt(names(130), RULES)
    while (asked := hunt.next()) is not None:
        hunt.add(HuntResult(asked.number, group, TrialOutcome.PASSED) for group in asked.groups)
    answer = hunt.answer()
    assert (answer.settled, answer.unmet, answer.advice) == (True, 0.0, "")


def test_pairs_that_cannot_meet_are_reported_with_what_to_change() -> None:
    """The share of them, and the settings that bring them together."""
    hunt = Hunt(names(130), replace(RULES, meetings=0))
    while (asked := hunt.next()) is not None:
        hunt.add(HuntResult(asked.number, group, TrialOutcome.PASSED) for group in asked.groups)
    answer = hunt.answer()
    assert answer.unmet > 0.1
    assert "pair_meetings" in answer.advice


@pytest.mark.parametrize("seed", [1, 2])
def test_a_bad_path_between_two_of_many_hosts_is_named(seed: int) -> None:
    """By the shipped suite, in a fleet whose hosts do not fit one group."""
    for fleet in fleets(WORLDS["pair"], 130, range(1), seed=seed):
        result = hunted("bootstrap", fleet)
        assert (result.named, result.accused) == (True, False)
