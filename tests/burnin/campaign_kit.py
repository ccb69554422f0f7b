"""Campaigns over simulated nodes: the failing pairs are given, and the loads' results are checked."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from clusterctl_burnin.campaign import Campaign, CampaignPlan, GroupTrials
from clusterctl_burnin.hunting.model import Group, HuntRound
from clusterctl_burnin.hunting.node_status import Measured
from clusterctl_burnin.loads.model import Trial, TrialOutcome
from clusterctl_burnin.suites.suite import shipped_suite
from tests.lab_data import lab_limits

PLAN = CampaignPlan(shipped_suite(), lab_limits(), "ops")
PAIRS, GROUPS = "ib_write_bw", "all_reduce"
Fails = Callable[[Group], bool]


def names(count: int) -> list[str]:
    return [f"node{i:03d}" for i in range(1, count + 1)]


def trial(group: Sequence[str], outcome: TrialOutcome, load: str = PAIRS, rail: int | None = 0) -> Trial:
    lane = dict.fromkeys(group, f"mlx5_{rail}") if rail is not None else {}
    return Trial(load, tuple(group), outcome, lane, rail=rail, value=None if outcome is TrialOutcome.HUNG else 1.0)


def reported(asked: HuntRound, fails: Fails, load: str = PAIRS, rails: Sequence[int] = (0,)) -> list[GroupTrials]:
    def of(group: Group) -> tuple[Trial, ...]:
        outcome = TrialOutcome.SLOW if fails(group) else TrialOutcome.PASSED
        return tuple(trial(group, outcome, load, rail) for rail in (rails if load == PAIRS else (None,)))

    return [GroupTrials(asked.number, group, of(group)) for group in asked.groups]


def run(campaign: Campaign, fails: Fails) -> int:
    """To its end; the number of rounds."""
    rounds = 0
    while (asked := campaign.next()) is not None:
        for one in reported(asked, fails, campaign.load):
            campaign.add(one)
        rounds += 1
    return rounds


def measured(load: str, trials: Iterable[Trial]) -> Measured:
    """What a campaign makes of these trials, each group a round of its own."""
    by_group: dict[tuple[int, Group], list[Trial]] = {}
    number, last = 0, None
    for one in trials:
        group = tuple(sorted(one.members))
        number += group != last
        last = group
        by_group.setdefault((number, group), []).append(one)
    events = [
        event
        for (count, group), its in by_group.items()
        for event in (HuntRound(count, (group,)), GroupTrials(count, group, tuple(its)))
    ]
    everyone = {name for _, group in by_group for name in group}
    return Campaign(PLAN, load, everyone, events).measured()
