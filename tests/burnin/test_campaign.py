"""A load over a batch of nodes: the bad node is distinguished from its partners, in simulated batches with known faults."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from clusterctl.fleet.errors import ParseError
from clusterctl.fleet.finding import Finding, Verdict
from clusterctl.fleet.finding_code import Code
from clusterctl_burnin.campaign import Campaign, CampaignPlan, GroupTrials, from_data, one_after_the_other, to_data
from clusterctl_burnin.hunting.model import Group, HuntRound, PartKind
from clusterctl_burnin.hunting.node_status import NodeStatus
from clusterctl_burnin.hunting.record import Dropped
from clusterctl_burnin.loads.model import Participant, TrialOutcome
from clusterctl_burnin.loads.report import findings
from clusterctl_burnin.suites.suite import shipped_suite
from tests.burnin.campaign_kit import GROUPS, PAIRS, PLAN, Fails, names, reported, run, trial


def statuses(campaign: Campaign) -> dict[str, NodeStatus]:
    (rail,) = campaign.measured().blame().values()
    return {name: found.status for name, found in rail.items()}


def after(count: int, fails: Fails, load: str = PAIRS) -> dict[str, NodeStatus]:
    campaign = Campaign(PLAN, load, names(count))
    run(campaign, fails)
    return statuses(campaign)


@pytest.mark.parametrize(("count", "rounds"), [(2, 5), (4, 5), (8, 5), (32, 5), (5, 7), (9, 6), (33, 6)])
def test_a_healthy_batch_is_proven_in_as_many_rounds_as_it_takes(count: int, rounds: int) -> None:
    """Each passes as often as the suite wants, the one that waited too; with two others where there are some."""
    campaign = Campaign(PLAN, PAIRS, names(count))
    assert run(campaign, lambda _: False) == rounds
    assert set(statuses(campaign)) == set(names(count))
    assert set(statuses(campaign).values()) == {NodeStatus.PROVEN}
    assert campaign.unsettled(names(count)) == (frozenset(names(2)) if count == 2 else frozenset())


@pytest.mark.parametrize("count", [4, 5, 8, 9, 32])
def test_one_bad_node_is_found_and_the_others_are_not_touched(count: int) -> None:
    """Whichever it is."""
    for bad in names(count):
        found = after(count, lambda group, bad=bad: bad in group)
        assert {name for name, status in found.items() if status is NodeStatus.BAD} == {bad}
        assert {status for name, status in found.items() if name != bad} == {NodeStatus.PROVEN}


@pytest.mark.parametrize("bad", [("node001", "node008"), ("node002", "node003"), ("node001", "node002")])
def test_two_bad_nodes_are_found(bad: tuple[str, str]) -> None:
    """Even if they met each other."""
    found = after(8, lambda group: bool({*group} & {*bad}))
    assert {name for name, status in found.items() if status is NodeStatus.BAD} == set(bad)
    assert {status for name, status in found.items() if name not in bad} == {NodeStatus.PROVEN}


def test_two_nodes_that_fail_together_are_not_accused_until_others_come() -> None:
    """They run once, ask for others, and where none come three times more; then they are in doubt."""
    alone = Campaign(PLAN, PAIRS, names(2))
    assert run(alone, lambda _: True) == 1
    assert alone.unproven(names(2)) == set(names(2))
    assert alone.insist()
    assert run(alone, lambda _: True) == 3
    assert not alone.insist()
    assert set(statuses(alone).values()) == {NodeStatus.SUSPECT}
    alone.join(names(5))
    run(alone, lambda group: "node002" in group)
    assert statuses(alone)["node002"] is NodeStatus.BAD
    assert {status for name, status in statuses(alone).items() if name != "node002"} == {NodeStatus.PROVEN}


def test_when_everything_fails_no_node_is_blamed() -> None:
    """A dead switch or a broken test is not the fault of eight nodes; it is called common."""
    assert set(after(8, lambda _: True).values()) == {NodeStatus.COMMON}


def test_a_bad_path_between_two_good_nodes_is_not_a_nodes_fault() -> None:
    """Both pass with every other node: neither is bad, neither is passed, and each finding names the other."""
    path = frozenset({"node001", "node008"})
    campaign = Campaign(PLAN, PAIRS, names(8))
    run(campaign, lambda group: path == {*group})
    (rail,) = campaign.measured().blame().values()
    blamed = {
        name: (found.status, found.partner) for name, found in rail.items() if found.status is not NodeStatus.PROVEN
    }
    assert blamed in (
        {},
        {"node001": (NodeStatus.PATH, "node008"), "node008": (NodeStatus.PATH, "node001")},
    )
    met = any({*one.members} == path for one in campaign.measured().trials)
    assert bool(blamed) == met


def test_what_happens_once_and_never_again_is_kept_as_chance() -> None:
    """The pair is measured until chance is the likeliest by far; its nodes are proven, and the failure is not hidden."""
    campaign, failed = Campaign(PLAN, PAIRS, names(8)), []

    def once(group: Sequence[str]) -> bool:
        failed.append(group)
        return len(failed) == 1

    rounds = run(campaign, once)
    (rail,) = campaign.measured().blame().values()
    assert {found.status for found in rail.values()} == {NodeStatus.PROVEN}
    assert {name for name, found in rail.items() if found.chance} == set(failed[0])
    assert rounds > 4


def test_a_bad_rail_is_separated_from_the_others() -> None:
    """Rails are judged each by itself."""
    campaign = Campaign(PLAN, PAIRS, names(8))
    while (asked := campaign.next()) is not None:
        for group in asked.groups:
            slow = TrialOutcome.SLOW if "node003" in group else TrialOutcome.PASSED
            trials = (trial(group, TrialOutcome.PASSED, rail=0), trial(group, slow, rail=1))
            campaign.add(GroupTrials(asked.number, group, trials))
    by_rail = {rail: found["node003"].status for rail, found in campaign.measured().blame().items()}
    assert by_rail == {0: NodeStatus.PROVEN, 1: NodeStatus.BAD}


def test_an_unmeasured_group_accuses_no_node() -> None:
    """A session that broke is not a slow node; it is asked again with others, and stays unmeasured if it stays so."""
    campaign = Campaign(PLAN, PAIRS, names(6))
    while (asked := campaign.next()) is not None:
        for group in asked.groups:
            outcome = TrialOutcome.UNMEASURED if "node002" in group else TrialOutcome.PASSED
            campaign.add(GroupTrials(asked.number, group, (trial(group, outcome),)))
    found = statuses(campaign)
    assert {name for name, status in found.items() if status is NodeStatus.UNMEASURED} == {"node002"}
    assert campaign.unproven(names(6)) == {"node002"}


@pytest.mark.parametrize("bad", ["node001", "node006", "node008"])
def test_a_failing_group_is_halved_and_the_bad_node_remains(bad: str) -> None:
    """all_reduce over eight: halves, then the suspects with proven partners."""
    found = after(8, lambda group: bad in group, GROUPS)
    assert {name for name, status in found.items() if status is NodeStatus.BAD} == {bad}
    assert {status for name, status in found.items() if name != bad} == {NodeStatus.PROVEN}


@pytest.mark.parametrize("load", [PAIRS, GROUPS])
@pytest.mark.parametrize("count", [0, 1])
def test_there_is_no_round_for_a_node_alone(load: str, count: int) -> None:
    """The findings then report that there was no partner to measure with."""
    assert Campaign(PLAN, load, names(count)).next() is None


@given(st.integers(2, 24))
def test_groups_have_the_size_that_the_limit_is_meant_for(count: int) -> None:
    """Groups of eight where there are enough nodes; each node is in exactly one group."""
    asked = Campaign(PLAN, GROUPS, names(count)).next()
    assert asked is not None
    seated = [name for group in asked.groups for name in group]
    assert sorted(seated) == names(count)
    assert all(min(count, 2) <= len(group) <= 9 for group in asked.groups)
    assert len(asked.groups) <= -(-count // 8) + 1


def test_a_node_that_falls_silent_is_left_out_and_its_partners_are_not_blamed() -> None:
    campaign = Campaign(PLAN, PAIRS, names(6))
    asked = campaign.next()
    assert asked is not None
    for one in reported(asked, lambda group: "node001" in group):
        campaign.add(one)
    assert campaign.drop("node001") == Dropped("node001", 1)
    run(campaign, lambda _: False)
    assert campaign.dropped == ("node001",)
    assert {found for name, found in statuses(campaign).items() if name != "node001"} == {NodeStatus.PROVEN}


@settings(max_examples=30, deadline=None)
@given(st.integers(2, 12), st.integers(0, 12), st.integers(0, 40))
def test_killed_anywhere_it_goes_on_and_ends_alike(count: int, bad: int, kill: int) -> None:
    """Known questions and answers are not asked again; from JSON as from memory."""

    def fails(group: Sequence[str]) -> bool:
        return f"node{bad:03d}" in group

    straight = Campaign(PLAN, PAIRS, names(count))
    run(straight, fails)
    events: list[HuntRound | GroupTrials | Dropped] = []
    killed = Campaign(PLAN, PAIRS, names(count))
    left = kill
    while left and (asked := killed.next()) is not None:
        if asked not in events and not any(isinstance(e, HuntRound) and e.number == asked.number for e in events):
            events.append(asked)
        for one in reported(asked, fails)[:left]:
            killed.add(one)
            events.append(one)
            left -= 1
    data = json.loads(json.dumps([to_data(event) for event in events]))
    resumed = Campaign(PLAN, PAIRS, names(count), [from_data(one) for one in data])
    run(resumed, fails)
    assert statuses(resumed) == statuses(straight)
    assert {one.members for one in resumed.measured().trials} == {one.members for one in straight.measured().trials}


def test_two_killed_campaigns_go_on_as_one() -> None:
    """Their rounds are numbered again; a node that left is gone, and no node is measured twice for it."""
    first, second = Campaign(PLAN, PAIRS, names(8)[:4]), Campaign(PLAN, PAIRS, names(8)[4:])
    histories = []
    for one in (first, second):
        asked = one.next()
        assert asked is not None
        histories.append([asked, *reported(asked, lambda group: "node005" in group)])
    history = one_after_the_other(histories)
    assert [event.number for event in history if isinstance(event, HuntRound)] == [1, 2]
    both = Campaign(PLAN, PAIRS, names(7), history)
    assert both.dropped == ("node008",)
    run(both, lambda group: "node005" in group)
    found = statuses(both)
    assert {name for name, status in found.items() if status is NodeStatus.BAD} == {"node005"}


@pytest.mark.parametrize(
    "nonsense",
    [{}, {"result": 1, "group": ["a"], "outcome": "passed", "rail": 0}, {"trials": [{}], "round": 1, "group": []}],
)
def test_what_is_no_event_of_a_campaign_is_refused(nonsense: dict[str, object]) -> None:
    with pytest.raises(ParseError, match="no event of"):
        from_data(nonsense)


def test_a_suite_sets_how_long_its_loads_last() -> None:
    """A pair for so many seconds at both ends, a group so many times; the time-outs grow with it, the rest stays."""
    members = tuple(Participant(name, "10.0.0.1", ("mlx5_0",)) for name in names(2))
    plain = CampaignPlan(replace(PLAN.suite, pair_seconds=None), PLAN.limits, "ops")
    longer = CampaignPlan(replace(PLAN.suite, pair_seconds=900, group_iterations=50), PLAN.limits, "ops")

    def sent(plan: CampaignPlan, load: str, member: Participant) -> str:
        return plan.job(load, members).commands[member.name].stdin.decode().replace("\\", "")

    for member in members:
        assert '"-n", "16"' in sent(plain, PAIRS, member)
        assert '"-D", "900"' in sent(longer, PAIRS, member)
    assert longer.job(PAIRS, members).timeout >= plain.job(PAIRS, members).timeout + 900
    assert '"-n", "50"' in sent(longer, GROUPS, members[0])
    assert longer.job(GROUPS, members).timeout - plain.job(GROUPS, members).timeout >= 9 * 90


def test_the_hunts_suite_has_a_known_bad_part_and_leads_each_node_through_many_groups() -> None:
    plan = CampaignPlan(shipped_suite("hunt"), PLAN.limits, "ops")
    assert all(plan.rules(load).known_bad for load in plan.suite.loads)
    campaign = Campaign(plan, GROUPS, names(64))
    assert run(campaign, lambda _: False) == 8
    assert set(statuses(campaign).values()) == {NodeStatus.PROVEN}


def findings_of(campaign: Campaign, count: int) -> dict[str, Finding]:
    """The one finding of each node."""
    members = [Participant(name, "10.0.0.1", ("mlx5_0",)) for name in names(count)]
    found = findings([campaign.measured()], members, PLAN.limits)
    return {name: finding for name, (finding,) in found.items()}


def test_a_failure_by_chance_alone_is_a_warning_with_its_partner() -> None:
    """The two nodes of the one failure get a warning, each with the other's name; no other node does."""
    campaign, ran = Campaign(PLAN, PAIRS, names(8)), []

    def once(group: Sequence[str]) -> bool:
        ran.append(group)
        return len(ran) == 1

    run(campaign, once)
    found = findings_of(campaign, 8)
    one, other = ran[0]
    assert {name for name, finding in found.items() if finding.verdict is Verdict.WARN} == {one, other}
    assert {finding.verdict for name, finding in found.items() if name not in ran[0]} == {Verdict.PASS}
    assert f"slow with {other}" in found[one].cause
    assert found[one].remedy


def test_the_two_ends_of_a_bad_path_are_held_and_each_finding_names_the_other() -> None:
    """INCONCLUSIVE: neither node is to be sent to repair for what lies between them."""
    campaign = Campaign(PLAN, PAIRS, names(2))
    path = ("node001", "node002")
    run(campaign, path.__eq__)
    campaign.join(names(8))
    run(campaign, path.__eq__)
    found = findings_of(campaign, 8)
    assert {name for name, finding in found.items() if finding.verdict is not Verdict.PASS} == set(path)
    assert {found[name].verdict for name in path} == {Verdict.INCONCLUSIVE}
    assert "between this node and node002" in found["node001"].cause
    assert "cables and switches between the two" in found["node001"].remedy


def on_leaves(count: int, size: int) -> dict[str, str]:
    return {name: f"leaf-{index // size + 1}" for index, name in enumerate(names(count))}


def test_a_bad_leaf_holds_its_nodes_and_sends_people_to_the_switch() -> None:
    """No node is blamed, and those of other leaves pass."""
    leaves = on_leaves(24, 6)
    campaign = Campaign(replace(PLAN, topology=leaves), PAIRS, names(24))
    run(campaign, lambda group: any(leaves[name] == "leaf-2" for name in group))
    found = findings_of(campaign, 24)
    assert {name for name, one in found.items() if one.verdict is not Verdict.PASS} == set(names(24)[6:12])
    for name in names(24)[6:12]:
        assert (found[name].verdict, found[name].code) == (Verdict.INCONCLUSIVE, Code.LOAD_SHARED)
        assert "the leaf of leaf-2" in found[name].cause
        assert "leaf switch" in found[name].remedy


def test_slow_uplinks_are_separated_from_a_bad_leaf() -> None:
    """Nodes of the leaf pass among themselves; what fails with others is the uplinks' fault, and no other leaf's."""
    leaves = on_leaves(24, 6)

    def crosses(group: Group) -> bool:
        own = {leaves[name] == "leaf-3" for name in group}
        return len(own) == 2

    campaign = Campaign(replace(PLAN, topology=leaves), PAIRS, names(24))
    run(campaign, crosses)
    (culprit,) = campaign.measured().answer.bad
    assert (culprit.part.kind, culprit.part.label) == (PartKind.UPLINK, "leaf-3")


def test_what_goes_wrong_everywhere_sends_people_to_the_switches_and_the_test() -> None:
    campaign = Campaign(PLAN, PAIRS, names(8))
    run(campaign, lambda _: True)
    found = findings_of(campaign, 8)
    assert {finding.verdict for finding in found.values()} == {Verdict.INCONCLUSIVE}
    assert all("with every node" in f.cause and "its limits" in f.remedy for f in found.values())
