"""Runs a suite's loads over nodes of one SKU, round after round, until every one is proven or its fault is found."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

from clusterctl.ports import Deadline, Shell
from clusterctl.steps.burnin.campaigns import CampaignLog, CampaignStore
from clusterctl.steps.burnin.node_under_test import NodeUnderTest, SessionFailure, probe_ssh, read_probes
from clusterctl_burnin.campaign import Campaign, Plan, Told, read
from clusterctl_burnin.hunting.model import Group
from clusterctl_burnin.hunting.node_status import Measured


@dataclass(frozen=True, slots=True)
class Concurrency:
    """How many nodes are checked, how many are loaded alone, and how many jobs of a load of several run, at the same
    time at most.

    Real nodes do not disturb each other, and loads are to fill the fabric. Those of a rehearsal share the controller's
    processors: more at once would measure the controller.
    """

    sweeps: int = 256
    jobs: int = 4096
    solo: int = 4096


UNLIMITED = Concurrency()
More = Callable[[bool], Sequence[NodeUnderTest]]
"""Brings further mates for a batch that is proven, or is not."""


@dataclass(slots=True)
class _Open:
    """One load's campaign, and where it is written down."""

    campaign: Campaign
    log: CampaignLog


@dataclass(slots=True)
class LoadRounds:
    """`pool` carries one thread for each guest.

    at_once  so many jobs of a round run together at most
    lost     who fell silent under the loads, and with what words: they are in no further round, and what they took part
             in when they went is not held against their mates
    """

    shell: Shell
    plan: Plan
    book: CampaignStore
    pool: ThreadPoolExecutor
    at_once: int
    lost: dict[str, SessionFailure] = field(default_factory=dict)

    def measured(self, guests: Sequence[NodeUnderTest], more: More, deadline: Deadline) -> tuple[Measured, ...]:
        """The suite's loads, a round of each in turn: a fault that comes and goes is not gone for all of one load's.

        They end where each guest is proven, or its fault is found, or nothing more can be learned from the mates that
        `more` brings.
        """
        by_name = {guest.node.name: guest for guest in guests}
        opened = [_Open(*self.book.open(self.plan, load, guests)) for load in self.plan.suite.loads]
        mine = frozenset(by_name)
        while True:
            running = [one for one in opened if self._round(one, by_name, deadline)]
            self._tell_who_is_lost(opened)
            if not running and not self._go_on(opened, mine, by_name, more):
                break
        for one in opened:
            one.log.ended()
        return tuple(one.campaign.measured() for one in opened)

    def _go_on(
        self, opened: Sequence[_Open], mine: frozenset[str], by_name: dict[str, NodeUnderTest], more: More
    ) -> bool:
        """Whether there is more to learn: from further mates, or without any from those who are here once more."""
        there = mine - self.lost.keys()
        for one in opened:
            if not one.campaign.unsettled(there):
                continue
            newcomers = more(not one.campaign.unproven(there))
            if newcomers:
                by_name |= {guest.node.name: guest for guest in newcomers}
                for each in opened:
                    each.campaign.join(guest.node.name for guest in newcomers)
                return True
        insisting = [one for one in opened if one.campaign.insist()]
        return bool(insisting)

    def _round(self, one: _Open, guests: Mapping[str, NodeUnderTest], deadline: Deadline) -> bool:
        """The next round of one load; False where there is none."""
        asked = one.campaign.next()
        if asked is None:
            return False
        one.log.asked(asked)
        with ThreadPoolExecutor(min(self.at_once, len(asked.groups)), "round") as running:
            told = list(running.map(lambda group: self._job(one, asked.number, group, guests, deadline), asked.groups))
        doubtful = {name for each in told if not all(t.passed for t in each.trials) for name in each.group}
        for each in told:
            one.campaign.tell(each)
        self._call(doubtful, guests, deadline)
        return True

    def _tell_who_is_lost(self, opened: Sequence[_Open]) -> None:
        for one in opened:
            for name in sorted(self.lost.keys() - set(one.campaign.gone)):
                one.log.dropped(one.campaign.drop(name))

    def _job(
        self, one: _Open, number: int, group: Group, guests: Mapping[str, NodeUnderTest], deadline: Deadline
    ) -> Told:
        """All members of a group at once; every member's evidence stays with it."""
        job = self.plan.job(one.campaign.load, tuple(guests[name].member for name in group))
        until = deadline.within(job.timeout)
        asked = {
            name: self.pool.submit(read_probes, self.shell, guests[name].host, command.stdin, until, privileged=False)
            for name, command in job.commands.items()
        }
        answers = {name: future.result()[0] for name, future in asked.items()}
        said = {
            name: answer.words if isinstance(answer, SessionFailure) else answer for name, answer in answers.items()
        }
        tried = read(job, said, self.plan.limits)
        for name in group:
            guests[name].keep(tried.evidence)
        told = Told(number, group, tried.trials)
        one.log.told(told, tried.evidence)
        return told

    def _call(self, names: Iterable[str], guests: Mapping[str, NodeUnderTest], deadline: Deadline) -> None:
        """Whoever was in a trial that went wrong is asked whether it is still there."""
        calls = {name: self.pool.submit(probe_ssh, self.shell, guests[name].host, deadline) for name in sorted(names)}
        for name, future in calls.items():
            silent = future.result()
            if silent is not None:
                self.lost[name] = silent
