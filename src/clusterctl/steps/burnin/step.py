"""burnin: check each node, load the sound ones alone, then together until every one is proven, or its fault is found,
and hold each against its fleet.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, as_completed

from clusterctl.fleet.finding import Finding, Verdict
from clusterctl.fleet.node import Step
from clusterctl.fleet.state import NodeState
from clusterctl.ports import Clock, Deadline, HostAddress, Shell
from clusterctl.steps.burnin.campaigns import CampaignStore
from clusterctl.steps.burnin.fleet_figures import FleetFigures
from clusterctl.steps.burnin.load_rounds import UNLIMITED, Concurrency, LoadRounds
from clusterctl.steps.burnin.node_checks import NetworkOf, NodeChecker
from clusterctl.steps.burnin.node_under_test import NodeUnderTest, SessionFailure, SkuLimits, probe_ssh
from clusterctl.steps.burnin.partners import MOST, PartnerLoan, PartnerPool
from clusterctl.steps.executor.reachability import BmcProbe, SshAccess
from clusterctl.steps.executor.step import IntentLog, Outcome
from clusterctl_burnin.alike import traits, unlike
from clusterctl_burnin.campaign import Plan
from clusterctl_burnin.host_requirements import HostRequirements
from clusterctl_burnin.kernel_log.known_lines import KnownLines
from clusterctl_burnin.loads import report
from clusterctl_burnin.loads.rank_placement import seat
from clusterctl_burnin.suites.suite import Suite

Introduce = Callable[[Sequence[HostAddress], Deadline], Mapping[str, str]]
"""Lets the nodes of a group log in to each other; node name → why it could not, for those where it failed."""


class Burnin:
    """Runs a suite over a batch: checks on every node, loads on those whose checks passed."""

    step = Step.BURNIN
    minimum = 2
    linger_s = 5.0
    at_once = 8

    def __init__(
        self,
        shell: Shell,
        suite: Suite,
        kinds: Mapping[str, SkuLimits],
        reach: SshAccess,
        introduce: Introduce,
        *,
        witness: BmcProbe,
        clock: Clock,
        book: CampaignStore,
        fleet: FleetFigures,
        driver_of: Callable[[NodeState], str],
        network_of: NetworkOf,
        known_lines: KnownLines | None = None,
        requirements: HostRequirements | None = None,
        partners: Sequence[NodeState] = (),
        pace: Concurrency = UNLIMITED,
    ) -> None:
        self._shell = shell
        self._suite = suite
        self._kinds = kinds
        self._reach = reach
        self._introduce = introduce
        self._book = book
        self._fleet = fleet
        known = known_lines or KnownLines()
        hosts = requirements or HostRequirements()
        self._examiner = NodeChecker(shell, clock, witness, driver_of, network_of, known, hosts)
        self._partners = partners
        self._pace = pace
        self._company = PartnerPool()
        self._welcomed = threading.Lock()

    def run(self, nodes: Sequence[NodeState], acts: IntentLog, deadline: Deadline) -> Iterator[Outcome]:
        del acts  # nothing is changed that outlives the run
        hosts, lost = self._reach.split(nodes, self.step)
        yield from lost
        guests = self._guests(nodes, hosts)
        with (
            self._company.batch(),
            ThreadPoolExecutor(len(guests) + len(self._partners) + MOST, "burnin") as pool,
            ThreadPoolExecutor(self._pace.sweeps, "sweep") as sweeps,
            ThreadPoolExecutor(self._pace.solo, "solo") as solo,
        ):
            swept = {sweeps.submit(self._check, guest, deadline): guest for guest in guests}
            self._welcome_partners(sweeps, deadline)
            alone: dict[Future[None], NodeUnderTest] = {}
            for guest in _as_ended(swept):
                if guest.sound and self._suite.solo:
                    alone[solo.submit(self._examiner.load, guest, self._suite, deadline)] = guest
                elif not guest.sound:
                    yield self._unfit(guest)
            for guest in _as_ended(alone):
                if not guest.sound:
                    yield self._unfit(guest)
            for kind in dict.fromkeys(guest.kind.sku.name for guest in guests):
                sound = [guest for guest in guests if guest.sound and guest.kind.sku.name == kind]
                yield from self._load(sound, pool, deadline)

    def _guests(self, nodes: Sequence[NodeState], hosts: Mapping[str, HostAddress]) -> list[NodeUnderTest]:
        return [
            NodeUnderTest(node, node.serial, hosts[node.name], self._kinds[node.sku])
            for node in nodes
            if node.name in hosts and node.serial is not None and node.sku in self._kinds
        ]

    def _welcome_partners(self, pool: ThreadPoolExecutor, deadline: Deadline) -> None:
        """Once a run: the partners that a person named are good company if their own checks pass now."""
        if not self._partners or not self._welcomed.acquire(blocking=False):
            return
        hosts, _ = self._reach.split(self._partners, self.step)
        named = self._guests(self._partners, hosts)
        for done in [pool.submit(self._check, guest, deadline) for guest in named]:
            done.result()
        for guest in named:
            if guest.sound:
                self._company.add(guest)

    def _unfit(self, guest: NodeUnderTest) -> Outcome:
        """A node whose checks, or a load of its own, did not pass is not loaded any further, and it is said so."""
        first = next(finding for finding in guest.findings if not finding.verdict.admits)
        cause = f"not run, because {first.check} did not pass"
        guest.findings += [
            Finding(
                check=load, verdict=Verdict.INCONCLUSIVE, cause=cause, root=first.root or first.key, deterministic=False
            )
            for load in self._suite.all_loads
            if load not in {finding.check for finding in guest.findings}
        ]
        return guest.outcome(self._suite)

    def _check(self, guest: NodeUnderTest, deadline: Deadline) -> None:
        answer = self._examiner.examine(guest, self._suite, self._suite.checks, deadline)
        if answer is not None:
            guest.seat = seat(answer, guest.host.address)
            guest.traits = traits(answer)

    def _load(self, guests: Sequence[NodeUnderTest], pool: ThreadPoolExecutor, deadline: Deadline) -> Iterator[Outcome]:
        """The suite's loads over nodes of one SKU, and as many further rounds as tell who is to blame."""
        if not guests:
            return
        with self._company.lent(guests, deadline) as lent:
            found, lost = self._measure(guests, lent, pool, deadline)
        others = self._fleet.findings(guests)
        odd = unlike({guest.node.name: guest.traits for guest in guests})
        for guest in guests:
            guest.findings += found.get(guest.node.name, ())
            guest.findings += others.get(guest.node.id, ())
            guest.findings += odd.get(guest.node.name, ())
            if guest.node.name in lost:
                self._examiner.fell_silent(guest, lost[guest.node.name], deadline)
            if guest.sound:
                self._company.add(guest)
            yield guest.outcome(self._suite)

    def _measure(
        self, guests: Sequence[NodeUnderTest], lent: PartnerLoan, pool: ThreadPoolExecutor, deadline: Deadline
    ) -> tuple[Mapping[str, tuple[Finding, ...]], Mapping[str, SessionFailure]]:
        """What the loads say of each node, and who fell silent under them."""
        everyone = [*guests, *lent.mates]
        strangers = self._introduce([guest.host for guest in everyone], deadline)
        gone = self._gone([guest for guest in everyone if guest.node.name in strangers], deadline)
        for guest in guests:
            if guest.node.name in strangers:
                guest.findings.append(_stranger(guest.node, strangers[guest.node.name]))
        friends = [guest for guest in everyone if guest.node.name not in strangers]

        def more(proven: bool) -> Sequence[NodeUnderTest]:
            newcomers = lent.more(proven=proven)
            unknown = self._introduce([guest.host for guest in (*friends, *newcomers)], deadline) if newcomers else {}
            known = [guest for guest in newcomers if guest.node.name not in unknown]
            friends.extend(known)
            return known

        plan = Plan(self._suite, guests[0].kind.limits, self._reach.user)
        loading = LoadRounds(self._shell, plan, self._book, pool, self._pace.jobs)
        measured = loading.measured(tuple(friends), more, deadline)
        return report.findings(measured, [g.member for g in friends], plan.limits), {**gone, **loading.lost}

    def _gone(self, guests: Sequence[NodeUnderTest], deadline: Deadline) -> Mapping[str, SessionFailure]:
        """Who of them does not even answer."""
        called = {guest.node.name: probe_ssh(self._shell, guest.host, deadline) for guest in guests}
        return {name: silent for name, silent in called.items() if silent is not None}


def _as_ended(futures: Mapping[Future[None], NodeUnderTest]) -> Iterator[NodeUnderTest]:
    """Whose work is over, one by one; raises what a thread of it raised."""
    for future in as_completed(futures):
        future.result()
        yield futures[future]


def _stranger(node: NodeState, why: str) -> Finding:
    return Finding(
        check="introduction",
        verdict=Verdict.INCONCLUSIVE,
        cause=f"the nodes of its group could not be made to know each other: {why}",
        remedy=f"run clusterctl configure on {node.name}, then burn it in again",
        deterministic=False,
    )
