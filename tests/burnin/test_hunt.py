"""Telling the bad node from its mates: simulated fleets with known faults, and no fault."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clusterctl.burnin.hunt import Standing, blame, sound, undecided
from clusterctl.burnin.limit import shipped_limits
from clusterctl.burnin.loads.model import Member, Outcome, Trial
from clusterctl.burnin.schedule import Schedule, new_groups, new_pairs, partition
from clusterctl.burnin.suite import shipped_suite
from clusterctl.cabling.tournament import circle

SCHEDULE = Schedule(shipped_suite(), shipped_limits("lab"), "ops")
Fails = Callable[[frozenset[str]], bool]


def names(count: int) -> list[str]:
    return [f"node{i:03d}" for i in range(1, count + 1)]


def members(count: int) -> list[Member]:
    return [Member(name, f"10.0.0.{i}", ("mlx5_0", "mlx5_1")) for i, name in enumerate(names(count), 1)]


def trial(group: Sequence[str], failed: bool, load: str = "ib_write_bw", rail: int | None = 0) -> Trial:
    return Trial(load, tuple(group), Outcome.SLOW if failed else Outcome.PASSED, {}, rail=rail)


def campaign(count: int, fails: Fails, waves: int = 3) -> dict[str, Standing]:
    """Two rounds of pairs, then up to `waves` confirming ones: the standings at the end."""
    everyone = members(count)
    trials = [trial(p, fails(frozenset(p))) for pairs in itertools.islice(circle(names(count)), 2) for p in pairs]
    for _ in range(waves):
        wave = SCHEDULE.confirm("ib_write_bw", trials, everyone)
        groups = [tuple(m.name for m in one.members) for one in wave]
        trials += [trial(group, fails(frozenset(group))) for group in groups]
    return {name: found.standing for name, found in blame(trials).items()}


def pairs_to_confirm(trials: Sequence[Trial], count: int) -> list[tuple[str, ...]]:
    return [tuple(m.name for m in one.members) for one in SCHEDULE.confirm("ib_write_bw", trials, members(count))]


@pytest.mark.parametrize("count", [2, 4, 8, 32])
def test_a_healthy_fleet_is_proven_and_nobody_is_asked_again(count: int) -> None:
    """Two rounds prove everyone; there is nothing to confirm."""
    trials = [trial(pair, failed=False) for pairs in itertools.islice(circle(names(count)), 2) for pair in pairs]
    assert {found.standing for found in blame(trials).values()} == {Standing.PROVEN}
    assert not pairs_to_confirm(trials, count)


@pytest.mark.parametrize("count", [5, 9, 33])
def test_who_had_to_wait_is_measured_with_as_many_as_the_others(count: int) -> None:
    """Of an odd number one waits in each round: those two are measured once more, and then there is nothing left."""
    trials = [trial(pair, failed=False) for pairs in itertools.islice(circle(names(count)), 2) for pair in pairs]
    pairs = pairs_to_confirm(trials, count)
    assert len(pairs) <= 2
    assert not pairs_to_confirm([*trials, *(trial(pair, failed=False) for pair in pairs)], count)


def test_who_lost_a_mate_is_measured_with_another() -> None:
    """A trial with a node that fell silent counts for nothing: one that passed is not enough where two are wanted."""
    trials = [trial(pair, failed=False) for pair in (("node001", "node002"), ("node003", "node004"))]
    again = pairs_to_confirm([*trials, trial(("node001", "node003"), failed=False)], 4)
    assert {"node002", "node004"} <= {name for pair in again for name in pair}
    assert not {frozenset(pair) for pair in again} & {frozenset(one.members) for one in trials}


@pytest.mark.parametrize("count", [4, 5, 8, 9, 32])
def test_one_bad_node_is_found_and_the_others_are_not_touched(count: int) -> None:
    """Whichever it is."""
    for bad in names(count):
        standings = campaign(count, lambda group, bad=bad: bad in group)
        assert {name for name, found in standings.items() if found is Standing.BAD} == {bad}
        assert {found for name, found in standings.items() if name != bad} == {Standing.PROVEN}


@pytest.mark.parametrize("bad", [("node001", "node008"), ("node002", "node003"), ("node001", "node002")])
def test_two_bad_nodes_are_found(bad: tuple[str, str]) -> None:
    """Even if they met each other."""
    standings = campaign(8, lambda group: bool(group & set(bad)))
    assert {name for name, found in standings.items() if found is Standing.BAD} == set(bad)
    assert {found for name, found in standings.items() if name not in bad} == {Standing.PROVEN}


def test_one_failing_pair_accuses_nobody() -> None:
    """Two nodes, nobody to compare with: both suspects."""
    standings = blame([trial(("a", "b"), failed=True)])
    assert {found.standing for found in standings.values()} == {Standing.SUSPECT}


def test_when_everything_fails_nobody_is_blamed() -> None:
    """A dead switch or a broken test is not the fault of eight nodes."""
    assert set(campaign(8, lambda _: True).values()) == {Standing.SUSPECT}


def test_a_bad_path_between_two_good_nodes_is_not_a_nodes_fault() -> None:
    """Both pass with everyone else: suspects of one trial, never bad."""
    path = frozenset({"node001", "node008"})
    standings = campaign(8, lambda group: group == path)
    assert Standing.BAD not in standings.values()
    assert {standings[name] for name in path} == {Standing.SUSPECT}


def test_a_node_that_met_only_bad_ones_is_unmeasured() -> None:
    """It is neither proven nor accused, and is to be measured again."""
    good = [trial(("a", "b"), failed=False), trial(("c", "d"), failed=False)]
    bad = [trial(pair, failed=True) for pair in (("x", "a"), ("x", "c"), ("x", "n"))]
    standings = {name: found.standing for name, found in blame(good + bad).items()}
    assert standings["x"] is Standing.BAD
    assert standings["n"] is Standing.UNMEASURED
    assert undecided(good + bad) == {"n"}
    assert "n" not in sound(good + bad)


def test_what_could_not_be_measured_accuses_nobody() -> None:
    """A session that broke is not a slow node."""
    unmeasured = Trial("ib_write_bw", ("a", "b"), Outcome.UNMEASURED, {}, rail=0)
    assert {found.standing for found in blame([unmeasured]).values()} == {Standing.UNMEASURED}
    assert blame([unmeasured, trial(("b", "c"), failed=False)])["b"].standing is Standing.PROVEN


def test_a_bad_rail_is_told_from_the_others() -> None:
    """Rails are judged each by itself."""
    trials = [
        trial(p, "node003" in p and rail == 1, rail=rail)
        for ps in itertools.islice(circle(names(8)), 3)
        for p in ps
        for rail in (0, 1)
    ]
    assert (
        "node003" in undecided(trials) or blame([t for t in trials if t.rail == 1])["node003"].standing is Standing.BAD
    )
    assert blame([t for t in trials if t.rail == 0])["node003"].standing is Standing.PROVEN
    assert "node003" not in sound(trials)


def test_a_failing_group_is_halved_and_the_bad_node_remains() -> None:
    """all_reduce over eight: halves, then the suspects beside proven mates."""
    everyone, bad = members(8), "node006"
    trials = [trial(names(8), failed=True, load="all_reduce", rail=None)]
    for _ in range(3):
        for one in SCHEDULE.confirm("all_reduce", trials, everyone):
            group = [m.name for m in one.members]
            trials.append(trial(group, bad in group, load="all_reduce", rail=None))
    standings = {name: found.standing for name, found in blame(trials).items()}
    assert {name for name, found in standings.items() if found is Standing.BAD} == {bad}
    assert {found for name, found in standings.items() if name != bad} == {Standing.PROVEN}


@given(st.integers(2, 40), st.integers(1, 12))
def test_a_tournament_never_repeats_a_pair(count: int, rounds: int) -> None:
    """Nobody plays twice in a round, no pair meets twice, at most one waits."""
    seen: set[frozenset[str]] = set()
    for pairs in itertools.islice(circle(names(count)), rounds):
        players = [name for pair in pairs for name in pair]
        assert len(players) == len(set(players)) == count - count % 2
        assert not seen & {frozenset(pair) for pair in pairs}
        seen |= {frozenset(pair) for pair in pairs}


@given(st.integers(0, 70), st.integers(2, 9), st.integers(2, 5))
def test_groups_hold_everyone_once_and_none_is_too_small(count: int, size: int, least: int) -> None:
    """Or there is no group at all, where there are too few nodes."""
    groups = partition(members(count), size, least)
    assert [m.name for group in groups for m in group] == (names(count) if count >= least else [])
    assert all(len(group) >= min(size, least) for group in groups)


def test_new_pairs_and_groups_bring_new_mates() -> None:
    """A suspect meets a sound node that it has not met; without sound nodes, another suspect, or nobody."""
    met = {frozenset(("s", "a"))}
    assert new_pairs(["s"], ["a", "b"], met) == (("b", "s"),)
    assert new_pairs(["s", "t"], [], set()) == (("t", "s"),)
    assert new_pairs(["s"], ["a"], met) == ()
    assert new_groups(["s", "t"], ["a", "b", "c", "d"]) == (("a", "b", "s"), ("c", "d", "t"))
    assert new_groups(["s"], []) == ()


@pytest.mark.parametrize("count", [0, 1])
def test_there_is_no_plan_for_a_node_alone(count: int) -> None:
    """No wave: the findings then say that there was nobody to measure with."""
    assert SCHEDULE.plan(members(count)) == ()


def test_the_plan_has_disjoint_rounds() -> None:
    """Two waves of pairs with one of groups between them; nobody is twice in a wave."""
    waves = SCHEDULE.plan(members(9))
    assert [len(wave) for wave in waves] == [4, 1, 4]
    for wave in waves:
        everyone = [member.name for one in wave for member in one.members]
        assert len(everyone) == len(set(everyone))
