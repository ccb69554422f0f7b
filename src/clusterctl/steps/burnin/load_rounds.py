"""Runs a suite's loads over nodes of one SKU, round after round, until every one is proven or its fault is found."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

from clusterctl.ports import Deadline, Shell
from clusterctl.ports.isolation import peer_error
from clusterctl.steps.burnin.campaigns import CampaignLog, CampaignStore
from clusterctl.steps.burnin.node_under_test import NodeUnderTest, SessionFailure, read_probes, unanswered
from clusterctl.steps.burnin.node_watch import NodeWatch
from clusterctl_burnin.campaign import Campaign, CampaignPlan, GroupTrials, read
from clusterctl_burnin.hunting.model import Group
from clusterctl_burnin.hunting.node_status import Measured
from clusterctl_burnin.loads.model import Trial, TrialOutcome, Tried

MorePartners = Callable[[bool], Sequence[NodeUnderTest]]
"""Brings further partners for a batch that is proven (True), or is not."""
Nodes = Mapping[str, NodeUnderTest]


@dataclass(frozen=True, slots=True)
class _Open:
    """One load's campaign, its log in the journal, and the nodes that it is run for."""

    campaign: Campaign
    log: CampaignLog
    own: frozenset[str]


@dataclass(slots=True)
class LoadRounds:
    """`pool` has one thread for each node. `watch` reads each node before and after each round.

    at_once  so many jobs of a round run together at most
    lost     the nodes that stopped answering under the loads, and why: they are in no further round, and what they
             took part in then is not held against their partners
    """

    shell: Shell
    plan: CampaignPlan
    campaigns: CampaignStore
    watch: NodeWatch
    pool: ThreadPoolExecutor
    at_once: int
    lost: dict[str, SessionFailure] = field(default_factory=dict)

    def measure(self, nodes: Sequence[NodeUnderTest], more: MorePartners, deadline: Deadline) -> tuple[Measured, ...]:
        """Run the suite's loads, a round of each in turn: an intermittent fault does not come and go within one load.

        A load runs on those of the nodes that no finding keeps from it. The loads end where each node is proven, or its
        fault is found, or nothing more can be learned from the partners that `more` brings.
        """
        by_name = {node.name: node for node in nodes}
        try:
            return self._measure(nodes, by_name, more, deadline)
        finally:
            for node in by_name.values():
                self.watch.finish(node)

    def _measure(
        self, nodes: Sequence[NodeUnderTest], by_name: dict[str, NodeUnderTest], more: MorePartners, deadline: Deadline
    ) -> tuple[Measured, ...]:
        opened = [self._open(load, nodes) for load in self.plan.suite.loads if any(n.fit_for(load) for n in nodes)]
        going_on = True
        while going_on:
            going_on = self._round_of_each(opened, by_name, deadline) or self._go_on(opened, by_name, more)
        for one in opened:
            one.log.ended()
        return tuple(one.campaign.measured() for one in opened)

    def _round_of_each(self, opened: Sequence[_Open], nodes: Nodes, deadline: Deadline) -> bool:
        """Run the next round of each load; False where no load has one."""
        running = [one for one in opened if self._round(one, nodes, deadline)]
        self._drop_lost(opened)
        return bool(running)

    def _open(self, load: str, nodes: Sequence[NodeUnderTest]) -> _Open:
        fit = [node for node in nodes if node.fit_for(load)]
        return _Open(*self.campaigns.open(self.plan, load, fit), own=frozenset(node.name for node in fit))

    def _go_on(self, opened: Sequence[_Open], by_name: dict[str, NodeUnderTest], more: MorePartners) -> bool:
        """Return whether there is more to learn: from further partners, or from the present ones once more."""
        for one in opened:
            there = one.own - self.lost.keys()
            if not one.campaign.unsettled(there):
                continue
            newcomers = more(not one.campaign.unproven(there))
            if newcomers:
                by_name |= {node.name: node for node in newcomers}
                for each in opened:
                    each.campaign.join(node.name for node in newcomers)
                return True
        insisting = [one for one in opened if one.campaign.insist()]
        return bool(insisting)

    def _round(self, one: _Open, nodes: Nodes, deadline: Deadline) -> bool:
        """Run the next round of one load; False where there is none."""
        asked = one.campaign.next()
        if asked is None:
            return False
        one.log.asked(asked)
        present = [nodes[name] for name in sorted(set(asked.hosts) - self.lost.keys())]
        starts = {node.name: self.pool.submit(self.watch.begin, node, deadline) for node in present}
        started = {name: future.result() for name, future in starts.items()}
        with ThreadPoolExecutor(min(self.at_once, len(asked.groups)), "round") as running:
            results = list(
                running.map(lambda group: self._job(one, asked.number, group, nodes, deadline), asked.groups)
            )
        load = one.campaign.load
        for done in [self.pool.submit(self.watch.end, n, load, started[n.name], deadline) for n in present]:
            done.result()
        for each in results:
            one.campaign.add(each)
        self._find_lost(_doubtful(results), nodes, deadline)
        return True

    def _drop_lost(self, opened: Sequence[_Open]) -> None:
        for one in opened:
            for name in sorted(self.lost.keys() - set(one.campaign.dropped)):
                one.log.dropped(one.campaign.drop(name))

    def _job(self, one: _Open, number: int, group: Group, nodes: Nodes, deadline: Deadline) -> GroupTrials:
        """Run a job on all members of a group at once; the evidence stays with every member."""
        job = self.plan.job(one.campaign.load, tuple(nodes[name].member for name in group))
        until = deadline.within(job.timeout)
        asked = {
            name: self.pool.submit(read_probes, self.shell, nodes[name].host, command.stdin, until, privileged=False)
            for name, command in job.commands.items()
        }
        answers = {name: future.result()[0] for name, future in asked.items()}
        readings = {
            name: answer.cause if isinstance(answer, SessionFailure) else answer for name, answer in answers.items()
        }
        try:
            tried = read(job, readings, self.plan.limits)
        except Exception as error:  # noqa: BLE001 — peer_error raises what is not the peer's
            broken = peer_error(error, ", ".join(group))
            trial = Trial(one.campaign.load, tuple(group), TrialOutcome.UNMEASURED, {}, detail=broken.message)
            tried = Tried((trial,), ())
        for name in group:
            nodes[name].keep(tried.evidence)
        trials = GroupTrials(number, group, tried.trials)
        one.log.add(trials, tried.evidence)
        return trials

    def _find_lost(self, names: Iterable[str], nodes: Nodes, deadline: Deadline) -> None:
        """Ask each node of a trial that failed whether it still answers."""
        calls = {name: self.pool.submit(unanswered, self.shell, nodes[name].host, deadline) for name in sorted(names)}
        for name, future in calls.items():
            failure = future.result()
            if failure is not None:
                self.lost[name] = failure


def _doubtful(results: Iterable[GroupTrials]) -> set[str]:
    """Return the nodes of the groups of which a trial did not pass."""
    return {name for each in results if not all(trial.passed for trial in each.trials) for name in each.group}
