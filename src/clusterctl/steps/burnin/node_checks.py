"""Checks of one node: one session reads the probes, the checks judge the answers; no answer is a finding."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import datetime

from clusterctl.fleet.errors import ClusterctlError, UsageError
from clusterctl.fleet.finding import Finding, Verdict
from clusterctl.fleet.network.host_network import HostNetwork
from clusterctl.fleet.state import NodeState
from clusterctl.ports import Deadline
from clusterctl.ports.isolation import peer_error
from clusterctl.steps.burnin.bmc_watch import BmcWatch
from clusterctl.steps.burnin.node_under_test import NodeUnderTest, SessionFailure, read_probes, unanswered, unknown
from clusterctl.steps.burnin.node_watch import NodeWatch, WatchPlan
from clusterctl.steps.burnin.plan import BurninPlan, BurninServices
from clusterctl.steps.executor.reachability import REACHABLE, host_unreachable
from clusterctl_burnin.alike import traits
from clusterctl_burnin.check import Check, Expected, causes_of, inconclusive
from clusterctl_burnin.fleet_metrics import samples
from clusterctl_burnin.kernel_log.slot_power import settled
from clusterctl_burnin.loads.obstacles import obstacle
from clusterctl_burnin.loads.rank_placement import seat
from clusterctl_burnin.probe import Readings
from clusterctl_burnin.recordings.session import session_evidence
from clusterctl_burnin.roots import link_roots
from clusterctl_burnin.sweep import Sweep, SweepFindings, judge, judge_all, sweep, unmeasured

_JUDGING = threading.Lock()
"""One answer is judged at a time: threads would take turns anyway, and each would compile the patterns of its own."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What a node's session brought, ready to be judged by `checks`."""

    node: NodeUnderTest
    checks: tuple[Check, ...]
    readings: Readings
    expected: Expected


@dataclass(frozen=True, slots=True)
class NodeChecker:
    """Checks nodes, and adds findings and evidence to them. Many threads may share it."""

    services: BurninServices
    plan: BurninPlan

    def check(self, node: NodeUnderTest, deadline: Deadline) -> None:
        """Run the suite's checks on the node; whatever its data causes is its own finding."""
        checks = self.plan.suite.checks
        self.bmc_watch.look(node, deadline)
        with self._isolated(node, checks):
            answer = self._examine(node, checks, deadline)
            if answer is not None and node.recorded:  # a check runs no load, and compares with no batch
                node.placement = seat(answer, node.host.address, node.sku)
                node.traits = traits(answer)

    def read(self, node: NodeUnderTest, deadline: Deadline) -> Answer | None:
        """Ask the node what the suite's checks want to know. None: no answer came, which is a finding of it now."""
        checks = self.plan.suite.checks
        self.bmc_watch.look(node, deadline)
        with self._isolated(node, checks):
            return self._ask(node, checks, deadline)
        return None

    def judge(self, answers: Sequence[Answer]) -> None:
        """Judge answers to the suite's checks together, and add the findings to their nodes.

        One check after another judges all of them: what it runs and reads stays in the processor's caches, and eight
        answers take 60 % of the time that they take one node after another (measured).
        """
        try:
            judged = judge_all(self.plan.suite.checks, [(one.readings, one.expected) for one in answers])
        except Exception:  # noqa: BLE001 — it is one node's: alone, each has its own
            for one in answers:
                with self._isolated(one.node, one.checks):
                    self._add(one.node, judge(one.checks, one.readings, one.expected))
        else:
            for one, found in zip(answers, judged, strict=True):
                self._add(one.node, found)

    @property
    def watch(self) -> NodeWatch:
        """Return the watch of the suite's loads."""
        services, plan = self.services, WatchPlan(self.plan.requirements, self.plan.sample_s)
        return NodeWatch(services.shell, services.clock, self.plan.suite.checks, self._expected, plan)

    @property
    def bmc_watch(self) -> BmcWatch:
        """Return the watch of what the BMCs report."""
        return BmcWatch(self.services.bmcs, self.services.clock)

    def load(self, node: NodeUnderTest, deadline: Deadline) -> None:
        """Run the suite's loads of one node, one after another; one that a finding stands against is left out."""
        self.bmc_watch.begin(node, deadline)
        try:
            self._load_alone(node, deadline)
        finally:
            self.watch.finish(node)
        self.look_again(node, deadline)

    def _load_alone(self, node: NodeUnderTest, deadline: Deadline) -> None:
        suite, watch = self.plan.suite, self.watch
        for load in suite.solo:
            if obstacle(load.needs, node.findings) is not None:
                continue
            check = load.check(node.limits, suite.node_seconds.get(load.name))
            started = watch.begin(node, deadline)
            with self._isolated(node, (check,)):
                self._examine(node, (check,), deadline, load=load.name)
            if not any(finding.check == REACHABLE for finding in node.findings):
                watch.end(node, load.name, started, deadline)
                self.add_watched(node)

    def look_again(self, node: NodeUnderTest, deadline: Deadline) -> None:
        """Run the checks once more that find what loads bring about, and add what they find now and did not before."""
        checks = tuple(check for check in self.plan.suite.checks if check.after_loads)
        if not checks or any(finding.check == REACHABLE for finding in node.findings):
            return
        before, node.findings = node.findings, []
        with self._isolated(node, checks):
            self._examine(node, checks, deadline, again=True)
        bad = (one for one in node.findings if one.verdict not in (Verdict.PASS, Verdict.NOT_APPLICABLE))
        new = unknown(bad, before)
        node.findings = self._merged(before, new) if new else before

    def settle_slots(self, node: NodeUnderTest, shared: frozenset[str]) -> None:
        """Make warnings of the slots with too little power that other nodes of the SKU have alike (`shared`)."""
        node.shared_slots = shared
        found = [replace(one, root="") for one in settled(node.findings, shared)]
        node.findings = list(link_roots(found, causes_of(self.plan.suite.checks)))

    def add_watched(self, node: NodeUnderTest) -> None:
        """Move what the watch found to the node's findings. Of a host that does not answer, only its silence counts."""
        found, node.watched = node.watched, []
        if not any(finding.check == REACHABLE for finding in node.findings):
            node.findings = self._merged(node.findings, found)

    def _merged(self, before: Sequence[Finding], new: Sequence[Finding]) -> list[Finding]:
        """Return all findings; a pass of a check that has a new finding is left out."""
        worse = {one.check for one in new if one.verdict is not Verdict.PASS}
        stays = [one for one in before if one.verdict is not Verdict.PASS or one.check not in worse]
        return list(link_roots([*stays, *new], causes_of(self.plan.suite.checks)))

    @contextmanager
    def _isolated(self, node: NodeUnderTest, checks: Sequence[Check]) -> Iterator[None]:
        """Turn what the node's data causes into INCONCLUSIVE findings of `checks`, in place of all others of theirs."""
        before = list(node.findings)
        try:
            yield
        except Exception as error:  # noqa: BLE001 — peer_error raises what is not the peer's
            broken = peer_error(error, node.name)
            node.findings = [*before, *(inconclusive(check.name, broken) for check in checks)]
            node.figures, node.traits = (), {}

    def _examine(
        self,
        node: NodeUnderTest,
        checks: Sequence[Check],
        deadline: Deadline,
        load: str = "",
        *,
        again: bool = False,
    ) -> Readings | None:
        """Run all of `checks` in one session. A check that could not be made is unmeasured, with the reason.

        `again`: the node has been loaded meanwhile. Such a session is no part of a recording, and its figures, of a hot
        node, are compared with no other.
        """
        answer = self._ask(node, checks, deadline)
        if answer is None:
            return None
        readings, expected = answer.readings, answer.expected
        if node.recorded and not again:
            sent, received, driver = expected.sent, expected.received, expected.driver_version
            node.keep([session_evidence(readings, sent, received, driver, self.plan.suite, load=load)])
        with _JUDGING:
            judged = judge(answer.checks, readings, expected)
        self._add(node, judged)
        if node.recorded and not again:
            node.figures += tuple(samples(node.state.id, node.sku.name, readings))
        return readings

    def _ask(self, node: NodeUnderTest, checks: Sequence[Check], deadline: Deadline) -> Answer | None:
        """Return the answer of one session; None, and the findings of that, where there is none."""
        shell, clock = self.services.shell, self.services.clock
        plan = sweep(checks, node.limits.patience, self.plan.requirements)
        sent = clock.now()
        answer, evidence = read_probes(shell, node.host, plan.stdin, deadline.within(plan.timeout), privileged=True)
        node.keep(evidence)
        if isinstance(answer, SessionFailure):
            self._failed(node, answer, plan, deadline)
            return None
        readings = replace(answer, recorded=node.recorded)
        return Answer(node, plan.checks, readings, self._expected(node, sent, clock.now()))

    @staticmethod
    def _add(node: NodeUnderTest, judged: SweepFindings) -> None:
        node.findings += settled(judged.findings, node.shared_slots)
        node.keep(judged.evidence)

    def _expected(self, node: NodeUnderTest, sent: datetime, received: datetime) -> Expected:
        return Expected(
            name=node.name,
            serial=node.serial,
            sku=node.sku,
            limits=node.limits,
            sent=sent,
            received=received,
            driver_version=self.plan.driver_of(node.state),
            inventory=node.state.inventory,
            network=self._network(node.state),
            known_lines=self.plan.known_lines,
        )

    def mark_unreachable(self, node: NodeUnderTest, failure: SessionFailure, deadline: Deadline) -> None:
        """Add the root finding on a host that does not answer; whatever else is bad about the node follows from it."""
        bmc = self.services.bmcs.read(node.name, deadline)
        node.keep(bmc.evidence)
        root = host_unreachable(node.state, failure.cause, failure.failure, bmc, remedy=failure.remedy)
        node.findings = list(link_roots([root, *(replace(finding, root="") for finding in node.findings)]))

    def _failed(self, node: NodeUnderTest, failure: SessionFailure, plan: Sweep, deadline: Deadline) -> None:
        """Add the findings of a session without readings: the host does not answer, or its answer is malformed."""
        lost = failure if failure.lost and deadline.remaining else unanswered(self.services.shell, node.host, deadline)
        remedy = f"run the burn-in of {node.name} again; if it stays so, look at the evidence of its session"
        node.findings += unmeasured(plan.checks, failure.cause, remedy)
        if lost is not None:
            self.mark_unreachable(node, lost, deadline)

    def _network(self, state: NodeState) -> HostNetwork | ClusterctlError:
        try:
            return self.plan.network_of(state)
        except UsageError as error:
            return error
