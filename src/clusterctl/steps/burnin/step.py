"""burnin: check each node, run the loads of one node, then loads of several until each node is proven or its fault is
found, and compare each node with its batch and its fleet.
"""

from __future__ import annotations

import threading
from collections.abc import Collection, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, as_completed

from clusterctl.fleet.finding import Finding, Verdict
from clusterctl.fleet.finding_code import Code
from clusterctl.fleet.node import Step
from clusterctl.fleet.partners import MOST
from clusterctl.fleet.state import NodeState
from clusterctl.ports import Deadline, HostAddress
from clusterctl.steps.burnin.load_rounds import LoadRounds
from clusterctl.steps.burnin.node_checks import NodeChecker
from clusterctl.steps.burnin.node_under_test import NodeUnderTest, SessionFailure, unanswered
from clusterctl.steps.burnin.partners import PartnerLoan, PartnerPool
from clusterctl.steps.burnin.plan import BurninPlan, BurninServices
from clusterctl.steps.executor.intent_log import IntentLog
from clusterctl.steps.executor.step import StepOutcome
from clusterctl_burnin.alike import unlike
from clusterctl_burnin.campaign import CampaignPlan
from clusterctl_burnin.kernel_log.slot_power import odd_in_node
from clusterctl_burnin.loads import report
from clusterctl_burnin.loads.obstacles import needs_of, obstacle


class Burnin:
    """Runs a suite over a batch: checks on every node, loads on those that no finding keeps from them."""

    step = Step.BURNIN
    minimum = 2
    linger_s = 5.0
    at_once = 8

    def __init__(self, services: BurninServices, plan: BurninPlan) -> None:
        self._services = services
        self._plan = plan
        self._suite = plan.suite
        self._checker = NodeChecker(services, plan)
        self._partners = PartnerPool()
        self._partners_checked = threading.Lock()

    def run(self, nodes: Sequence[NodeState], intents: IntentLog, deadline: Deadline) -> Iterator[StepOutcome]:
        deadline = intents.fenced([node.id for node in nodes], deadline)  # another run's node is not loaded
        hosts, lost = self._services.access.split(nodes, self.step)
        yield from lost
        batch = self._under_test(nodes, hosts)
        concurrency = self._plan.concurrency
        with (
            self._partners.batch(),
            ThreadPoolExecutor(len(batch) + len(self._plan.partners) + MOST, "burnin") as pool,
            ThreadPoolExecutor(concurrency.checks, "checks") as checks,
            ThreadPoolExecutor(concurrency.loads, "loads") as loads,
        ):
            for node in self._tested_alone(batch, checks, loads, deadline):
                if self._is_done(node):
                    self._checker.bmc_watch.end(node, deadline)
                    yield self._unfit(node)
            for sku in dict.fromkeys(node.sku.name for node in batch):
                going_on = [node for node in batch if node.sku.name == sku and not self._is_done(node)]
                yield from self._load(going_on, pool, deadline)

    def _tested_alone(
        self, batch: Sequence[NodeUnderTest], checks: ThreadPoolExecutor, loads: ThreadPoolExecutor, deadline: Deadline
    ) -> Iterator[NodeUnderTest]:
        """Yield each node once its checks and its loads of one node are done."""
        checked = {checks.submit(self._checker.check, node, deadline): node for node in batch}
        self._check_partners(checks, deadline)
        loaded: dict[Future[None], NodeUnderTest] = {}
        for node in self._settled(batch, _as_completed(checked)):
            if any(obstacle(load.needs, node.findings) is None for load in self._suite.solo):
                loaded[loads.submit(self._checker.load, node, deadline)] = node
            else:
                yield node
        yield from _as_completed(loaded)

    def _settled(self, batch: Sequence[NodeUnderTest], checked: Iterator[NodeUnderTest]) -> Iterator[NodeUnderTest]:
        """Yield each checked node; one with an adapter that is odd in it, once all nodes of its SKU can be compared."""
        waiting = []
        for node in checked:
            if odd_in_node(node.findings):
                waiting.append(node)
            else:
                yield node
        for sku in dict.fromkeys(node.sku.name for node in waiting):
            shared = self._services.fleet.shared_slots([node for node in batch if node.sku.name == sku])
            for node in (one for one in waiting if one.sku.name == sku):
                self._checker.settle_slots(node, shared)
                yield node

    def _is_done(self, node: NodeUnderTest) -> bool:
        """Return whether the node has failed, and its findings keep it from each load of several nodes."""
        return not node.healthy and not any(node.fit_for(load) for load in self._suite.loads)

    def _under_test(self, nodes: Sequence[NodeState], hosts: Mapping[str, HostAddress]) -> list[NodeUnderTest]:
        return [
            NodeUnderTest(node, node.serial, hosts[node.name], self._plan.limits[node.sku])
            for node in nodes
            if node.name in hosts and node.serial is not None and node.sku in self._plan.limits
        ]

    def _check_partners(self, pool: ThreadPoolExecutor, deadline: Deadline) -> None:
        """Add the plan's partners to the pool, once a run, where their own checks pass now."""
        if not self._plan.partners or not self._partners_checked.acquire(blocking=False):
            return
        hosts, _ = self._services.access.split(self._plan.partners, self.step)
        partners = self._under_test(self._plan.partners, hosts)
        for done in [pool.submit(self._checker.check, node, deadline) for node in partners]:
            done.result()
        for node in self._settled(partners, iter(partners)):
            if node.healthy:
                self._partners.add(node)

    def _unfit(self, node: NodeUnderTest) -> StepOutcome:
        """Return the outcome of a node with findings that keep it from all further loads."""
        node.findings += self._not_run(node, {finding.check for finding in node.findings})
        return node.outcome(self._suite)

    def _not_run(self, node: NodeUnderTest, ran: Collection[str]) -> list[Finding]:
        """Return a finding for each load that the node did not run, with the finding that kept it from the load."""
        needs = {load.name: load.needs for load in self._suite.solo}
        findings = []
        for load in self._suite.all_loads:
            kept = (
                obstacle(needs[load] if load in needs else needs_of(load), node.findings) if load not in ran else None
            )
            if kept is not None:
                findings.append(
                    Finding(
                        check=load,
                        verdict=Verdict.INCONCLUSIVE,
                        code=Code.STEP_FAILED_BEFORE,
                        cause=f"not run, because {kept.check} did not pass",
                        root=kept.root or kept.key,
                        deterministic=False,
                    )
                )
        return findings

    def _load(
        self, nodes: Sequence[NodeUnderTest], pool: ThreadPoolExecutor, deadline: Deadline
    ) -> Iterator[StepOutcome]:
        """Run the suite's loads over nodes of one SKU, in as many rounds as find the faulty ones."""
        if not nodes:
            return
        for begun in [pool.submit(self._checker.bmc_watch.begin, node, deadline) for node in nodes]:
            begun.result()
        with self._partners.lend(nodes, deadline) as loan:
            found, lost = self._measure(nodes, loan, pool, deadline)
        self._add_findings(nodes, found)
        for node in nodes:
            if node.name in lost:
                self._checker.mark_unreachable(node, lost[node.name], deadline)
        looking = [pool.submit(self._after_loads, node, deadline) for node in nodes]
        for node, look in zip(nodes, looking, strict=True):
            look.result()
            if node.healthy:
                self._partners.add(node)
            yield node.outcome(self._suite)

    def _after_loads(self, node: NodeUnderTest, deadline: Deadline) -> None:
        self._checker.look_again(node, deadline)
        self._checker.bmc_watch.end(node, deadline)

    def _add_findings(self, nodes: Sequence[NodeUnderTest], found: Mapping[str, Sequence[Finding]]) -> None:
        """Add what the loads found of each node, what they did not measure, and how the nodes differ."""
        unusual = self._services.fleet.findings(nodes)
        different = unlike({node.name: node.traits for node in nodes})
        for node in nodes:
            own = [finding for finding in found.get(node.name, ()) if node.fit_for(finding.check)]
            ran = {finding.check for finding in (*own, *node.findings)}
            node.findings += [*own, *self._not_run(node, ran)]
            node.findings += unusual.get(node.state.id, ())
            node.findings += different.get(node.name, ())
            self._checker.add_watched(node)

    def _measure(
        self, nodes: Sequence[NodeUnderTest], loan: PartnerLoan, pool: ThreadPoolExecutor, deadline: Deadline
    ) -> tuple[Mapping[str, tuple[Finding, ...]], Mapping[str, SessionFailure]]:
        """Return what the loads find of each node, and the nodes that stopped answering under them."""
        everyone = [*nodes, *loan.partners]
        refused = self._introduce(everyone, deadline)
        lost = self._lost([node for node in everyone if node.name in refused], deadline)
        for node in nodes:
            if node.name in refused:
                node.findings.append(_not_introduced(node.state, refused[node.name]))
        group = [node for node in everyone if node.name not in refused]

        def more(proven: bool) -> Sequence[NodeUnderTest]:
            newcomers = loan.more(proven=proven)
            unknown = self._introduce([*group, *newcomers], deadline) if newcomers else {}
            known = [node for node in newcomers if node.name not in unknown]
            group.extend(known)
            return known

        racks = {n.name: f"rack {n.state.location.rack}" for n in everyone if n.state.location.rack}
        topology = {**racks, **self._plan.leaf_of}
        plan = CampaignPlan(self._suite, nodes[0].limits, self._services.access.user, topology)
        services, jobs = self._services, self._plan.concurrency.jobs
        rounds = LoadRounds(services.shell, plan, services.campaigns, self._checker.watch, pool, jobs)
        measured = rounds.measure(tuple(group), more, deadline)
        return report.findings(measured, [node.member for node in group], plan.limits), {**lost, **rounds.lost}

    def _introduce(self, nodes: Sequence[NodeUnderTest], deadline: Deadline) -> Mapping[str, str]:
        return self._services.introduce([node.host for node in nodes], deadline)

    def _lost(self, nodes: Sequence[NodeUnderTest], deadline: Deadline) -> Mapping[str, SessionFailure]:
        """Return which of them do not even answer."""
        failures = {node.name: unanswered(self._services.shell, node.host, deadline) for node in nodes}
        return {name: failure for name, failure in failures.items() if failure is not None}


def _as_completed(futures: Mapping[Future[None], NodeUnderTest]) -> Iterator[NodeUnderTest]:
    """Yield each node when its work is done; raise what its thread raised."""
    for future in as_completed(futures):
        future.result()
        yield futures[future]


def _not_introduced(node: NodeState, why: str) -> Finding:
    return Finding(
        check="introduction",
        verdict=Verdict.INCONCLUSIVE,
        code=Code.NOT_INTRODUCED,
        cause=f"the nodes of its group could not be given each other's keys: {why}",
        remedy=f"run clusterctl configure on {node.name}, then burn it in again",
        deterministic=False,
    )
