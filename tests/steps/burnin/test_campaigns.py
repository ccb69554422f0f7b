"""Campaigns in the journal: a run that was killed goes on with what was measured, and with nothing else."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

import pytest

from clusterctl.edges.journal import SqlJournal
from clusterctl.fleet.node import NodeId, Serial
from clusterctl.fleet.state import NodeState
from clusterctl.ports import HostAddress
from clusterctl.steps.burnin.campaigns import FRESH, CampaignLog, CampaignStore
from clusterctl.steps.burnin.node_under_test import NodeUnderTest, SkuLimits
from clusterctl_burnin.campaign import Campaign, CampaignPlan, GroupTrials
from clusterctl_burnin.hunting.model import HuntRound, host
from clusterctl_burnin.loads.model import TrialOutcome
from tests.burnin.campaign_kit import PAIRS, PLAN, names, trial
from tests.steps.discover.test_discover import SKU
from tests.steps.fakes import NOW, seen


@dataclass(frozen=True, slots=True)
class At:
    """A clock that stands."""

    moment: datetime

    def now(self) -> datetime:
        return self.moment


def book_of(journal: SqlJournal, later: timedelta = timedelta()) -> CampaignStore:
    """As a new process opens it, `later` than the journal's own time."""
    return CampaignStore(journal, At(NOW + later))


def under_test(count: int, since: datetime | None = None) -> list[NodeUnderTest]:
    return [
        NodeUnderTest(
            NodeState(NodeId(f"id-{name}"), name, since=since),
            Serial(name),
            HostAddress(name, "10.0.0.1", "ops", "k", "h"),
            SkuLimits(SKU, PLAN.limits),
        )
        for name in names(count)
    ]


def play(
    campaign: Campaign, log: CampaignLog, fails: Callable[[Sequence[str]], bool], most: int = 1000
) -> list[GroupTrials]:
    """Rounds, each answer written down as it comes; with `most` answers given, the process dies, if it is the last one."""
    messages: list[GroupTrials] = []
    while (asked := campaign.next()) is not None:
        log.asked(asked)
        for group in asked.groups:
            if len(messages) == most:
                return messages
            evidence = seen(f"{asked.number} {group}")
            outcome = TrialOutcome.SLOW if fails(group) else TrialOutcome.PASSED
            reported = GroupTrials(
                asked.number, group, (replace(trial(group, outcome), evidence=(evidence[0].digest,)),)
            )
            log.add(reported, evidence)
            campaign.add(reported)
            messages.append(reported)
    if len(messages) < most:
        log.ended()
    return messages


def bad(group: Sequence[str]) -> bool:
    return "node003" in group


@pytest.mark.parametrize("most", range(7))
def test_killed_after_any_answer_the_rest_is_measured_and_nothing_twice(book: SqlJournal, most: int) -> None:
    """The same trials in all as without the kill, the same culprit; old evidence is with the nodes again."""
    before = play(*book_of(book).open(PLAN, PAIRS, under_test(6)), bad, most)
    again = under_test(6)
    campaign, log = book_of(book).open(PLAN, PAIRS, again)
    kept = {item.digest for node in again for item in node.evidence.values()}
    assert kept == {digest for reported in before for one in reported.trials for digest in one.evidence}
    after = play(campaign, log, bad)
    straight = Campaign(PLAN, PAIRS, names(6))
    reported = []
    while (asked := straight.next()) is not None:
        for group in asked.groups:
            reported.append(
                GroupTrials(
                    asked.number, group, (trial(group, TrialOutcome.SLOW if bad(group) else TrialOutcome.PASSED),)
                )
            )
            straight.add(reported[-1])
    assert sorted(one.group for one in (*before, *after)) == sorted(one.group for one in reported)
    assert {culprit.part for culprit in campaign.measured().answer.bad} == {host("node003")}


def test_what_has_ended_is_not_gone_on_with(book: SqlJournal) -> None:
    """A confirming run measures again."""
    play(*book_of(book).open(PLAN, PAIRS, under_test(4)), bad)
    campaign, _ = book_of(book).open(PLAN, PAIRS, under_test(4))
    assert campaign.rounds == 0


def test_killed_twice_nothing_is_lost_and_nothing_counts_double(book: SqlJournal) -> None:
    """The second process carries over what the first had; a third finds it once."""
    before = play(*book_of(book).open(PLAN, PAIRS, under_test(6)), bad, 1)
    middle = play(*book_of(book).open(PLAN, PAIRS, under_test(6)), bad, 1)
    campaign, _ = book_of(book).open(PLAN, PAIRS, under_test(6))
    assert [one.members for one in campaign.measured().trials] == [one.group for one in (*before, *middle)]


def test_a_campaign_of_this_process_is_left_to_the_batch_that_leads_it(book: SqlJournal) -> None:
    one = book_of(book)
    play(*one.open(PLAN, PAIRS, under_test(6)), bad, 2)
    campaign, _ = one.open(PLAN, PAIRS, under_test(6))
    assert campaign.rounds == 0


OTHER_LIMITS = CampaignPlan(PLAN.suite, replace(PLAN.limits, digest="other"), PLAN.user)
LONGER = CampaignPlan(replace(PLAN.suite, pair_seconds=1800), PLAN.limits, PLAN.user)
OTHER_SUITE = CampaignPlan(replace(PLAN.suite, name="nightly"), PLAN.limits, PLAN.user)


@pytest.mark.parametrize(
    ("plan", "nodes", "later"),
    [
        (OTHER_LIMITS, under_test(6), timedelta()),
        (OTHER_SUITE, under_test(6), timedelta()),
        (LONGER, under_test(6), timedelta()),
        (PLAN, under_test(6), FRESH + timedelta(minutes=1)),
        (PLAN, under_test(6, NOW + timedelta(days=1)), timedelta()),
        (PLAN, [replace(node, state=replace(node.state, name="x")) for node in under_test(1)], timedelta()),
    ],
    ids=["other limits", "other suite", "longer", "a day ago", "moved since", "other nodes"],
)
def test_old_results_are_measured_again(
    book: SqlJournal, plan: CampaignPlan, nodes: list[NodeUnderTest], later: timedelta
) -> None:
    play(*book_of(book).open(PLAN, PAIRS, under_test(6)), bad, 3)
    campaign, _ = book_of(book, later).open(plan, PAIRS, nodes)
    assert campaign.rounds == 0


def test_a_node_that_left_is_gone_and_its_partners_are_not_blamed(book: SqlJournal) -> None:
    """The killed run's node003 answers no more: what went wrong with it is its own."""
    play(*book_of(book).open(PLAN, PAIRS, under_test(6)), bad, 3)
    here = [node for node in under_test(6) if node.name != "node003"]
    campaign, log = book_of(book).open(PLAN, PAIRS, here)
    assert campaign.dropped == ("node003",)
    play(campaign, log, lambda _: False)
    assert not campaign.unproven([node.name for node in here])


def test_a_node_that_was_silent_and_is_back_is_asked_again(book: SqlJournal) -> None:
    """A group that failed when it fell silent accuses no node; it is no more out of the campaign."""
    campaign, log = book_of(book).open(PLAN, PAIRS, under_test(6))
    asked = campaign.next()
    assert isinstance(asked, HuntRound)
    log.asked(asked)
    for group in asked.groups:
        log.add(
            GroupTrials(1, group, (trial(group, TrialOutcome.HUNG if bad(group) else TrialOutcome.PASSED),)), seen()
        )
    log.dropped(campaign.drop("node003"))
    again, log = book_of(book).open(PLAN, PAIRS, under_test(6))
    assert again.dropped == ()
    play(again, log, lambda _: False)
    assert not again.unsettled(names(6))
    assert not again.measured().answer.bad
