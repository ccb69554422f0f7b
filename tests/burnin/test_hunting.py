"""The hunt finds the bad hosts in few rounds, whatever is unmeasured, late, killed or noisy; it accuses no good host."""

from __future__ import annotations

import itertools
import json
import random
import time
from collections.abc import Callable, Iterable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from clusterctl.fleet.errors import ParseError
from clusterctl_burnin.hunting.deal import Meetings, Sizes, deal
from clusterctl_burnin.hunting.hunt import Hunt
from clusterctl_burnin.hunting.model import Assumptions, Group, HuntPart, HuntResult, HuntRound, Rules, host, pair
from clusterctl_burnin.hunting.record import event_from_data, event_to_data
from clusterctl_burnin.loads.model import TrialOutcome

Fails = Callable[[Group], bool]


def names(count: int) -> list[str]:
    return [f"n{index:04d}" for index in range(count)]


def results_of(asked: HuntRound, fails: Fails, rail: int | None = None) -> list[HuntResult]:
    return [
        HuntResult(asked.number, g, TrialOutcome.SLOW if fails(g) else TrialOutcome.PASSED, rail) for g in asked.groups
    ]


def run(hunt: Hunt, fails: Fails) -> int:
    """To its end; the number of rounds."""
    rounds = 0
    while (asked := hunt.next()) is not None:
        hunt.add(results_of(asked, fails))
        rounds += 1
    return rounds


def accused(hunt: Hunt) -> set[HuntPart]:
    return {culprit.part for culprit in hunt.answer().bad}


def leaves(count: int, size: int) -> dict[str, str]:
    """The leaf of each host, `size` neighbours on each."""
    return {name: f"leaf{index // size:02d}" for index, name in enumerate(names(count))}


@given(st.integers(0, 120), st.integers(0, 9), st.integers(2, 5), st.integers(0, 30), st.sampled_from([0, 8, 17]))
@settings(deadline=None)
def test_a_deal_is_a_partition(count: int, number: int, least: int, more: int, leaf: int) -> None:
    """Within and across leaves: no host twice, no group below the least size, all placed but the odd one of pairs."""
    known = leaves(count, leaf) if leaf else {}
    groups = deal(names(count), (), number, known, Sizes(least, least + more), Meetings())
    placed = [name for group in groups for name in group]
    assert len(placed) == len(set(placed))
    assert all(len(group) >= least for group in groups)
    waiting = count - len(placed)
    assert waiting <= (1 if least + more == 2 else 0) or count < least


@pytest.mark.parametrize("count", [48, 511])
def test_rounds_alternate_across_and_within_leaves(count: int) -> None:
    """Within: one leaf a group. Across: two, other ones next time, so that one leaf's fault is not another's."""
    known, met = leaves(count, 8 if count == 48 else 32), Meetings()
    together = []
    for number in range(4):
        groups = deal(names(count), (), number, known, Sizes(4, 4), met)
        for group in groups:
            met.add(group)
        spans = [frozenset(known[name] for name in group) for group in groups if len(group) == 4]
        whole = [span for span in spans if len(span) == 1 + (number + 1) % 2]
        assert len(whole) >= 0.9 * len(spans)
        together.append(set(whole))
    assert not together[0] & together[2]


def test_two_hosts_rarely_meet_again() -> None:
    """In five rounds of groups of four, of 48 hosts: few pairs are together twice."""
    met = Meetings()
    for number in range(5):
        for group in deal(names(48), (), number, {}, Sizes(4, 4), met):
            met.add(group)
    assert sum(times > 1 for times in met.times.values()) <= 0.1 * len(met.times)


def test_suspects_are_apart() -> None:
    """One in a group, as long as there are as many groups."""
    suspects = set(names(48)[::4])
    for number in range(4):
        groups = deal(names(48), suspects, number, leaves(48, 24), Sizes(4, 4), Meetings())
        assert max(len(suspects & set(group)) for group in groups) == 1


@pytest.mark.parametrize("count", [6, 16, 48, 130])
@pytest.mark.parametrize("bad", [0, 1, 2, 3])
def test_what_is_steadily_bad_is_found(count: int, bad: int) -> None:
    """Just the bad ones, all others proven, and all measured; few enough rounds."""
    for seed in range(3):
        culprits = frozenset(random.Random(seed).sample(names(count), min(bad, count // 4)))
        hunt = Hunt(names(count), Rules())
        rounds = run(hunt, lambda group, culprits=culprits: bool(culprits & set(group)))
        answer = hunt.answer()
        assert accused(hunt) == {host(name) for name in culprits}
        assert (answer.settled, answer.advice) == (True, "")
        assert set(answer.proven) == set(names(count)) - culprits
        assert rounds <= (5 if not culprits else 12)


def test_a_bad_path_between_good_hosts_is_called_a_path() -> None:
    """Both of its ends pass with everyone else."""
    path = ("n0003", "n0017")
    hunt = Hunt(names(48), Rules(most=4, widest=64, rounds=60))
    run(hunt, set(path).issubset)
    assert accused(hunt) == {pair(*path)}
    assert set(path) <= set(hunt.answer().proven)


def test_intermittent_faults_and_false_alarms() -> None:
    """A host bad in 70 % of its runs, 2 % of good groups failing: named in nine of ten hunts, the innocent never in more
    than a few of a hundred.
    """
    right = wrong = 0
    for seed in range(20):
        chance = random.Random(seed)
        culprit = chance.choice(names(48))
        hunt = Hunt(names(48), Rules(most=4, screening=6))
        run(hunt, lambda g, c=chance, bad=culprit: (bad in g and c.random() < 0.7) or c.random() < 0.02)
        right += host(culprit) in accused(hunt)
        wrong += len(accused(hunt) - {host(culprit)})
    assert right >= 18
    assert wrong <= 1


def test_a_hunt_with_a_known_bad_part_finds_a_fault_that_hardly_shows() -> None:
    """Two failures that meet in one host may be chance; where it is known that they are not, that host is the likeliest."""
    found = {True: 0, False: 0}
    noisy = Assumptions(noise=(0.01, 0.02, 0.1, 0.3, 0.6))
    for seed, known_bad in itertools.product(range(40), found):
        chance = random.Random(seed)
        culprit = chance.choice(names(48))
        hunt = Hunt(names(48), Rules(most=4, screening=5, rounds=7, known_bad=known_bad, assumptions=noisy))
        run(hunt, lambda g, c=chance, bad=culprit: (bad in g and c.random() < 0.7) or c.random() < 0.02)
        found[known_bad] += hunt.answer().best == ((host(culprit), None),)
    assert found[True] >= 34
    assert found[True] > found[False]


def test_no_host_is_accused_where_nothing_fails_though_a_part_is_known_to_be_bad() -> None:
    hunt = Hunt(names(16), Rules(known_bad=True))
    run(hunt, lambda _: False)
    assert (hunt.answer().best, hunt.answer().bad, len(hunt.answer().proven)) == ((), (), 16)


@given(st.integers(2, 20), st.sets(st.integers(0, 19), max_size=3), st.integers(1, 3))
def test_a_load_of_pairs_is_never_run_by_three(count: int, bad: set[int], screening: int) -> None:
    """Whichever hosts are bad, and however many there are; every host is measured."""
    culprits = {f"n{index:04d}" for index in bad}
    hunt = Hunt(names(count), Rules(most=2, screening=screening, rounds=12))
    while (asked := hunt.next()) is not None:
        assert {len(group) for group in asked.groups} == {2}
        hunt.add(results_of(asked, lambda group: bool(culprits & set(group))))
    assert not hunt.answer().unmeasured


def test_a_pair_alone_is_not_asked_for_ever() -> None:
    """As often as the rules allow; then only further hosts add information, and with them it goes on."""
    hunt = Hunt(names(2), Rules(most=2, alone=1))
    assert run(hunt, lambda _: True) == 1
    joined = Hunt(names(5), Rules(most=2, alone=1), hunt.events)
    run(joined, lambda group: "n0001" in group)
    assert accused(joined) == {host("n0001")}
    assert "n0000" in joined.answer().proven


def test_a_path_between_two_is_found_by_pairs() -> None:
    """Both ends pass with others, and fail together again."""
    path = ("n0001", "n0004")
    hunt = Hunt(names(8), Rules(most=2, screening=7, rounds=30))
    run(hunt, set(path).issubset)
    assert accused(hunt) == {pair(*path)}


def test_a_job_that_could_not_be_started_is_no_rail() -> None:
    """No host is unmeasured on a rail that does not exist."""
    hunt = Hunt(names(6), Rules(most=2, screening=2))
    while (asked := hunt.next()) is not None:
        first = asked.number == 1
        hunt.add(
            HuntResult(
                asked.number, g, TrialOutcome.UNMEASURED if first and rail is None else TrialOutcome.PASSED, rail
            )
            for g in asked.groups
            for rail in ((None,) if first and "n0000" in g else (0, 1))
        )
    assert hunt.answer().unmeasured == ()


def test_when_everything_fails_no_host_is_accused() -> None:
    """A dead switch, a broken test, a wrong limit: the result is a common cause, with the part to check."""
    hunt = Hunt(names(64))
    run(hunt, lambda _: True)
    answer = hunt.answer()
    assert (answer.bad, answer.common, answer.proven) == ((), (None,), ())
    assert "all runs fail" in answer.advice


def test_two_hosts_alone_cannot_be_separated_and_that_is_reported() -> None:
    """Two hosts that fail together: both suspects, neither accused, with the run that would decide."""
    hunt = Hunt(names(2), Rules(rounds=4))
    run(hunt, lambda _: True)
    answer = hunt.answer()
    assert not answer.bad
    assert not answer.settled or answer.common
    assert answer.advice


def test_rails_are_separated() -> None:
    """A host bad on one rail, another rail that fails as a whole: the host with its rail, the rail by itself."""
    hunt = Hunt(names(48), Rules(screening=2))
    while (asked := hunt.next()) is not None:
        results = [
            r
            for rail in range(4)
            for r in results_of(asked, lambda g, rail=rail: rail == 3 or (rail == 1 and "n0007" in g), rail)
        ]
        hunt.add(results)
    answer = hunt.answer()
    assert [(c.part, c.rails) for c in answer.bad] == [(host("n0007"), (1,))]
    assert answer.common == (3,)
    assert "rail 3" in answer.advice


@pytest.mark.parametrize("outcome", [TrialOutcome.HUNG, TrialOutcome.FAILED, TrialOutcome.SLOW])
def test_a_hang_is_evidence_like_any_failure(outcome: TrialOutcome) -> None:
    """The hung job accuses its members, as a slow one does."""
    hunt = Hunt(names(20), Rules())
    while (asked := hunt.next()) is not None:
        hunt.add(HuntResult(asked.number, g, outcome if "n0004" in g else TrialOutcome.PASSED) for g in asked.groups)
    assert accused(hunt) == {host("n0004")}


@pytest.mark.parametrize("count", [4, 5, 7, 16])
def test_a_host_that_others_wait_for_is_found_where_all_fit_in_one_group(count: int) -> None:
    """Each group of all hosts hangs: smaller ones without it prove the others, and no healthy host is held."""
    hunt = Hunt(names(count), Rules(most=64, screening=2))
    while (asked := hunt.next()) is not None:
        for group in asked.groups:
            missing = tuple({"n0001"} & {*group})
            outcome = TrialOutcome.HUNG if missing else TrialOutcome.PASSED
            hunt.add([HuntResult(asked.number, group, outcome, None, missing)])
    assert accused(hunt) == {host("n0001")}
    assert hunt.answer().suspects == ()
    assert {*hunt.answer().proven} == {*names(count)} - {"n0001"}


def test_unmeasured_is_not_good() -> None:
    """A host with jobs that never report is asked a few times more, then called unmeasured, and nothing is decided."""
    hunt = Hunt(names(12), Rules(most=4))
    while (asked := hunt.next()) is not None:
        hunt.add(
            HuntResult(asked.number, g, TrialOutcome.UNMEASURED if "n0002" in g else TrialOutcome.PASSED)
            for g in asked.groups
        )
    answer = hunt.answer()
    assert answer.unmeasured == ("n0002",)
    assert "n0002" not in answer.proven
    assert (answer.settled, answer.bad) == (False, ())
    assert set(answer.proven) == set(names(12)) - {"n0002"}


def test_a_host_that_drops_out_explains_its_round_and_is_left_out() -> None:
    """Its partners are not suspected for the round in which it went."""
    hunt = Hunt(names(16), Rules())
    first = hunt.next()
    assert first is not None
    hunt.add(results_of(first, lambda group: "n0005" in group))
    hunt.drop("n0005")
    while (asked := hunt.next()) is not None:
        assert "n0005" not in asked.hosts
        hunt.add(results_of(asked, lambda _: False))
    answer = hunt.answer()
    assert (answer.bad, answer.suspects, answer.dropped) == ((), (), ("n0005",))
    assert set(answer.proven) == set(names(16)) - {"n0005"}


def test_a_killed_hunt_goes_on_with_the_missing_answers() -> None:
    """Rebuilt from its events in the middle of a round, it asks for the rest of that round, and ends alike."""

    def fails(group: Group) -> bool:
        return bool({"n0001", "n0030"} & set(group))

    straight = Hunt(names(48), Rules(screening=2))
    run(straight, fails)
    killed = Hunt(names(48), Rules(screening=2))
    while (asked := killed.next()) is not None:
        results = results_of(asked, fails)
        killed.add(results[: len(results) // 2])
        killed = Hunt(names(48), Rules(screening=2), killed.events)
        rest = killed.next()
        assert rest is not None
        if rest.number == asked.number:
            assert set(rest.groups) == {result.group for result in results[len(results) // 2 :]}
            killed.add(results_of(rest, fails))
    assert killed.events == straight.events
    assert killed.answer() == straight.answer()


def test_events_survive_a_journal() -> None:
    """As JSON and back; what is no event is refused in words."""
    hunt = Hunt(names(20))
    asked = hunt.next()
    assert asked is not None
    hunt.add(results_of(asked, lambda group: "n0003" in group, rail=2))
    hunt.drop("n0004")
    kept = json.dumps([event_to_data(event) for event in hunt.events])
    again = Hunt(names(20), events=[event_from_data(data) for data in json.loads(kept)])
    assert (again.events, again.next()) == (hunt.events, hunt.next())
    for nonsense in (
        {},
        {"reported": 1},
        {"asked": 1, "groups": None},
        {"reported": 1, "group": [], "outcome": "x", "rail": 0},
    ):
        with pytest.raises(ParseError, match="no event of a hunt"):
            event_from_data(nonsense)


@settings(max_examples=20, deadline=None)
@given(st.randoms(use_true_random=False))
def test_the_order_of_arrival_changes_nothing(chance: random.Random) -> None:
    """Results shuffled within their round, given in parts, and twice: the same rounds, events and answer."""

    def hunted(shuffled: bool) -> Hunt:
        hunt = Hunt(names(30), Rules(screening=2))
        while (asked := hunt.next()) is not None:
            results = results_of(asked, lambda group: "n0011" in group)
            if shuffled:
                chance.shuffle(results)
                hunt.add(results[:2])
            hunt.add(results)
        return hunt

    assert hunted(shuffled=True).events == hunted(shuffled=False).events


def test_of_two_answers_the_worse_one_holds() -> None:
    """Whichever came first."""
    orders: Iterable[tuple[TrialOutcome, TrialOutcome]] = itertools.permutations(
        (TrialOutcome.PASSED, TrialOutcome.SLOW)
    )
    hunts = []
    for outcomes in orders:
        hunt = Hunt(names(9))
        asked = hunt.next()
        assert asked is not None
        hunt.add(HuntResult(asked.number, asked.groups[0], outcome) for outcome in outcomes)
        hunts.append(hunt)
    assert hunts[0].events == hunts[1].events


def test_what_was_never_asked_is_refused() -> None:
    """Results of another hunt are no evidence in this one."""
    hunt = Hunt(names(9))
    with pytest.raises(ValueError, match="round 1 has no group"):
        hunt.add([HuntResult(1, ("n0000", "n0001"), TrialOutcome.PASSED)])
    asked = hunt.next()
    with pytest.raises(ValueError, match="another hunt"):
        Hunt(["x", "y"], events=hunt.events)
    assert hunt.next() == asked


@pytest.mark.parametrize(
    ("least", "most", "screening", "sure"), [(1, 4, 1, 0.95), (4, 3, 1, 0.95), (2, 4, 0, 0.95), (2, 4, 1, 1.0)]
)
def test_rules_that_contradict_themselves_are_refused(least: int, most: int, screening: int, sure: float) -> None:
    with pytest.raises(ValueError, match="contradict"):
        Rules(least=least, most=most, screening=screening, sure=sure)


@pytest.mark.parametrize("count", [2, 3, 5, 7, 11, 511])
def test_a_healthy_fleet_is_proven_in_as_many_rounds_as_are_wanted(count: int) -> None:
    """Some more when an odd number runs in pairs; no host runs again after that."""
    for rules in (Rules(), Rules(most=2)) if count < 511 else (Rules(widest=64),):
        hunt = Hunt(names(count), rules)
        assert run(hunt, lambda _: False) <= (8 if rules.most == 2 else 5)
        answer = hunt.answer()
        assert (answer.proven, answer.settled) == (tuple(names(count)), True)


def test_one_bad_of_four_thousand_is_found_in_bearable_time() -> None:
    """Plan and posterior of a round take seconds with the largest fleet, also while everything is in doubt."""
    hunt = Hunt(names(4096), Rules(most=4, widest=64, rounds=20), topology=leaves(4096, 32))
    begin = time.process_time()
    rounds = run(hunt, lambda group: "n2020" in group)
    assert accused(hunt) == {host("n2020")}
    assert (time.process_time() - begin) / rounds < 10


@pytest.mark.parametrize("least", [2, 4])
def test_groups_keep_to_their_sizes(least: int) -> None:
    """A load that needs four nodes never runs with fewer, also for suspects."""
    hunt = Hunt(names(32), Rules(least=least, most=4))
    while (asked := hunt.next()) is not None:
        assert all(least <= len(group) <= 4 + 2 * (least - 1) for group in asked.groups)
        hunt.add(results_of(asked, lambda group: "n0009" in group or "n0021" in group))
    assert accused(hunt) == {host("n0009"), host("n0021")}
