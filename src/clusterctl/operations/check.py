"""Checks of nodes in service: what the checks without loads find now, on nodes of any stage.

Claims, changes and records nothing: no stage, no decision, no evidence. A burn-in or a night records.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import closing
from dataclasses import dataclass, replace

from clusterctl.edges.clock import CLOCK
from clusterctl.edges.site import contents
from clusterctl.fleet.decisions.waiver import waived
from clusterctl.fleet.errors import CancelledError
from clusterctl.fleet.finding import Finding, Report, Verdict, worst
from clusterctl.fleet.finding_code import Code
from clusterctl.fleet.node import Stage, Step
from clusterctl.fleet.state import NodeState
from clusterctl.operations.adapters import Access
from clusterctl.operations.collector import collector_paused
from clusterctl.operations.compose import StepFactory
from clusterctl.operations.context import SiteContext
from clusterctl.operations.operation import Control
from clusterctl.operations.selection import selected
from clusterctl.ports import Deadline
from clusterctl.steps.burnin.node_checks import Answer, NodeChecker
from clusterctl.steps.burnin.node_under_test import NodeUnderTest
from clusterctl_burnin.kernel_log.slot_power import accepted_slots
from clusterctl_burnin.suites.suite import Suite

NAME = "check"
UNMEASURED = 4
"""Exit code where nothing failed, but something could not be measured."""
TOGETHER_S = 5.0
"""Seconds: the answers that come within them are judged together, which is cheaper (`NodeChecker.judge`)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckRequest:
    """`nodes`: names and patterns; `idle`: no job runs on them, so that all checks of the suite may be made."""

    nodes: tuple[str, ...]
    idle: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckedNode:
    """What the checks found of one node; a waived finding is a warning."""

    node: str
    stage: Stage
    findings: tuple[Finding, ...]

    @property
    def verdict(self) -> Verdict:
        return worst(finding.verdict for finding in self.findings)


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckResult:
    """The nodes by name; `left_out`: checks that need a node without jobs."""

    nodes: tuple[CheckedNode, ...]
    left_out: tuple[str, ...] = ()
    cancelled: bool = False

    @property
    def exit_code(self) -> int:
        """0: no node failed; 1: some did; 4: none did, but something was not measured; 130: cancelled."""
        if self.cancelled:
            return CancelledError.exit_code
        verdicts = {node.verdict for node in self.nodes}
        if Verdict.FAIL in verdicts:
            return 1
        return UNMEASURED if Verdict.INCONCLUSIVE in verdicts else 0


def suite_of(suite: Suite, *, idle: bool) -> tuple[Suite, tuple[str, ...]]:
    """Return the suite's checks without its loads, and the names of the checks that a job on the node rules out."""
    left_out = () if idle else tuple(check.name for check in suite.checks if check.idle_only)
    checks = tuple(check for check in suite.checks if check.name not in left_out)
    return replace(suite, name=NAME, checks=checks, loads=(), solo=(), node_seconds={}), left_out


def run(context: SiteContext, request: CheckRequest, control: Control) -> CheckResult:
    """Check the nodes, many at a time. What is wrong with one of them is its own finding."""
    with collector_paused():  # one collection of all that a command has loaded takes 80 ms
        nodes = context.states(selected(context, request.nodes))
        suite, left_out = suite_of(contents.suite(context.site), idle=request.idle)
        with closing(context.adapters(Access.READ)) as adapters:
            checker = StepFactory(context, adapters, control.cancelled, read_only=True).node_checker(suite)
            found = _check_all(context, checker, nodes, control)
    return CheckResult(nodes=found, left_out=left_out, cancelled=control.cancelled.is_set())


def _check_all(
    context: SiteContext, checker: NodeChecker, nodes: Sequence[NodeState], control: Control
) -> tuple[CheckedNode, ...]:
    """Return the nodes that were checked, in the order of `nodes`; those that a cancelled run came to."""
    deadline = Deadline.after(float(context.site.settings.deadlines.burnin), control.cancelled)
    found: dict[str, CheckedNode] = {}
    with ThreadPoolExecutor(checker.plan.concurrency.checks, "check") as pool:
        running = {pool.submit(_read, checker, node, deadline) for node in nodes}
        while running:
            done, running = wait(running, timeout=TOGETHER_S)
            for one in _judged(checker, [read for read in map(_result, done) if read is not None]):
                found[one.node] = one
                control.on_event(one)
    return tuple(found[node.name] for node in nodes if node.name in found)


def _read(checker: NodeChecker, state: NodeState, deadline: Deadline) -> CheckedNode | Answer:
    """Return what the node answered; a node that cannot be asked, or that does not answer, is checked with that."""
    if deadline.cancelled.is_set():
        raise CancelledError("the check was stopped")
    node = _under_test(checker, state)
    if isinstance(node, Finding):
        return CheckedNode(node=state.name, stage=state.stage, findings=(node,))
    return checker.read(node, deadline) or _checked(node)


def _result(done: Future[CheckedNode | Answer]) -> CheckedNode | Answer | None:
    """Return the result; None for a node that a cancelled run did not come to."""
    try:
        return done.result()
    except CancelledError:
        return None


def _judged(checker: NodeChecker, read: Sequence[CheckedNode | Answer]) -> Iterator[CheckedNode]:
    """Yield the nodes that were read, checked."""
    answers = [one for one in read if isinstance(one, Answer)]
    checker.judge(answers)
    yield from (_checked(one.node) if isinstance(one, Answer) else one for one in read)


def _checked(node: NodeUnderTest) -> CheckedNode:
    report = waived(Report(NAME, NAME, tuple(node.findings)), node.state.waivers, CLOCK.now())
    kept = (replace(one, evidence=()) if one.evidence else one for one in report.findings)  # no journal holds it
    return CheckedNode(node=node.name, stage=node.state.stage, findings=tuple(kept))


def _under_test(checker: NodeChecker, state: NodeState) -> NodeUnderTest | Finding:
    """Return the node, ready for its checks, or why it cannot be checked."""
    if state.serial is None or not state.sku:
        return _unknown("its serial or SKU is unknown", f"run clusterctl discover --limit {state.name}")
    profile = checker.plan.limits.get(state.sku)
    if profile is None:
        return _unknown(f"the site has no SKU {state.sku}", "add the SKU to site.yml: skus")
    host = checker.services.access.address(state)
    if host is None:
        return _unknown("its address or host key is unknown", f"run clusterctl install --limit {state.name}")
    last = state.reports.get(Step.BURNIN.value)
    slots = accepted_slots(last.findings if last else ())
    return NodeUnderTest(state, state.serial, host, profile, recorded=False, shared_slots=slots)


def _unknown(cause: str, remedy: str) -> Finding:
    return Finding(
        check=NAME,
        verdict=Verdict.INCONCLUSIVE,
        code=Code.HOST_UNKNOWN,
        cause=cause,
        remedy=remedy,
        deterministic=False,
    )
