"""One session with a node: its probes' answers, judged; and what is said of a node that did not answer."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from clusterctl.fleet.errors import ClusterctlError, UsageError
from clusterctl.fleet.network.host_network import HostNetwork
from clusterctl.fleet.state import NodeState
from clusterctl.ports import Clock, Deadline, Shell
from clusterctl.steps.burnin.node_under_test import NodeUnderTest, SessionFailure, probe_ssh, read_probes
from clusterctl.steps.executor.reachability import BmcProbe, host_unreachable
from clusterctl_burnin.check import Check, Expected
from clusterctl_burnin.fleet_metrics import samples
from clusterctl_burnin.host_requirements import HostRequirements
from clusterctl_burnin.kernel_log.known_lines import KnownLines
from clusterctl_burnin.probe import Readings
from clusterctl_burnin.recordings.session import session_evidence
from clusterctl_burnin.roots import link_roots
from clusterctl_burnin.suites.suite import Suite
from clusterctl_burnin.sweep import Sweep, judge, sweep, unmeasured

NetworkOf = Callable[[NodeState], HostNetwork]
"""What the host's network shall be; raises `UsageError` where a port that is meant is not known."""


@dataclass(frozen=True, slots=True)
class NodeChecker:
    """Asks guests, and leaves with them what was found and the evidence of it. Many threads may share it."""

    shell: Shell
    clock: Clock
    witness: BmcProbe
    driver_of: Callable[[NodeState], str]
    network_of: NetworkOf
    known_lines: KnownLines = field(default_factory=KnownLines)
    requirements: HostRequirements = field(default_factory=HostRequirements)

    def load(self, guest: NodeUnderTest, suite: Suite, deadline: Deadline) -> None:
        """The suite's loads of one node, one after another, until one does not pass."""
        for load in suite.solo:
            if not guest.sound:
                return
            check = load.check(guest.kind.limits, suite.node_seconds.get(load.name))
            self.examine(guest, suite, (check,), deadline, load=load.name)

    def examine(
        self, guest: NodeUnderTest, suite: Suite, checks: Sequence[Check], deadline: Deadline, load: str = ""
    ) -> Readings | None:
        """All of the `checks` in one session; what went wrong on the way becomes each one's reason to be unmeasured."""
        plan = sweep(checks, guest.kind.limits.patience, self.requirements)
        sent = self.clock.now()
        answer, evidence = read_probes(
            self.shell, guest.host, plan.stdin, deadline.within(plan.timeout), privileged=True
        )
        guest.keep(evidence)
        if isinstance(answer, SessionFailure):
            self._unanswered(guest, answer, plan, deadline)
            return None
        received = self.clock.now()
        driver = self.driver_of(guest.node)
        guest.keep([session_evidence(answer, sent, received, driver, suite, load=load)])
        expected = Expected(
            name=guest.node.name,
            serial=guest.serial,
            sku=guest.kind.sku,
            limits=guest.kind.limits,
            sent=sent,
            received=received,
            driver_version=driver,
            inventory=guest.node.inventory,
            network=self._network(guest.node),
            known_lines=self.known_lines,
        )
        judged = judge(plan.checks, answer, expected)
        guest.findings += judged.findings
        guest.keep(judged.evidence)
        guest.figures += tuple(samples(guest.node.id, guest.kind.sku.name, answer))
        return answer

    def fell_silent(self, guest: NodeUnderTest, gone: SessionFailure, deadline: Deadline) -> None:
        """One root finding; whatever else is bad about the node follows from it."""
        testimony = self.witness.ask(guest.node.name, deadline)
        guest.keep(testimony.evidence)
        root = host_unreachable(guest.node, gone.words, testimony, remedy=gone.remedy)
        guest.findings = list(link_roots([root, *(replace(finding, root="") for finding in guest.findings)]))

    def _unanswered(self, guest: NodeUnderTest, answer: SessionFailure, plan: Sweep, deadline: Deadline) -> None:
        """No readings: the host is silent, which explains the rest, or what it said was not understood."""
        gone = answer if answer.lost and deadline.remaining else probe_ssh(self.shell, guest.host, deadline)
        remedy = f"run the burn-in of {guest.node.name} again; if it stays so, look at the evidence of its session"
        guest.findings += unmeasured(plan.checks, answer.words, remedy)
        if gone is not None:
            self.fell_silent(guest, gone, deadline)

    def _network(self, node: NodeState) -> HostNetwork | ClusterctlError:
        try:
            return self.network_of(node)
        except UsageError as error:
            return error
