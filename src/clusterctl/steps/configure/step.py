"""configure: the roles that make a GPU host of an installed OS, through Ansible; then a reboot, where one is needed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any

from clusterctl.fleet.acts import Act, ActResult
from clusterctl.fleet.finding import Finding, Observed, Verdict, passed
from clusterctl.fleet.finding_code import Code
from clusterctl.fleet.node import Step
from clusterctl.fleet.state import NodeState
from clusterctl.formats.host.ssh import parse_ssh_failure
from clusterctl.ports import Deadline, HostAddress, Playbooks, PlayOutcome
from clusterctl.steps.configure.hardware import HardwareProbe, explained
from clusterctl.steps.configure.reboots import (
    Need,
    RebootRequest,
    Reboots,
    evidence_of,
    in_vain,
    need,
    not_allowed,
    not_back,
    not_in_time,
    settle,
)
from clusterctl.steps.executor.bursts import bursts
from clusterctl.steps.executor.intent_log import IntentLog
from clusterctl.steps.executor.permits import RebootPermits, unlimited
from clusterctl.steps.executor.reachability import BmcProbe, SshAccess, host_unreachable
from clusterctl.steps.executor.step import StepOutcome, with_evidence

UNFINISHED = "configure_unfinished_on"
"""Variable of `configure.yml`: the nodes with services that may run with older settings than the written ones."""
Play = Observed[PlayOutcome]


def plays_before(nodes: Iterable[NodeState]) -> Mapping[str, Sequence[str]]:
    """Return the argument of `configure.yml` about earlier plays: the names of the nodes without a report of a last
    play that ended well. That play was killed or failed, or the node was revalidated since.
    """
    return {UNFINISHED: [node.name for node in nodes if _is_unfinished(node)]}


def _is_unfinished(node: NodeState) -> bool:
    """Return whether a play over it was begun that did not end well: what it wrote may not be in force."""
    report = node.reports.get(Step.CONFIGURE.value)
    ended_well = report is not None and report.verdict is Verdict.PASS
    return (play := node.intent(Act.CONFIGURE_PLAY)) is not None and (play.open or not ended_well)


@dataclass(frozen=True, slots=True)
class ConfigureServices:
    """What the step works with.

    hardware  reads a node with a failed task; None: the task alone is the finding
    permits   how many hosts may reboot at once
    """

    playbooks: Playbooks
    access: SshAccess
    bmcs: BmcProbe
    hardware: HardwareProbe | None = None
    permits: RebootPermits = unlimited


class Configure:
    """One play over a batch; each host's own result is its outcome.

    Hosts with roles that need a reboot are rebooted together once the play is over for all. Then the play runs once
    more over them: that proves what the reboot was for.
    """

    step = Step.CONFIGURE
    minimum = 1
    linger_s = 3.0
    at_once = 4

    def __init__(
        self,
        services: ConfigureServices,
        playbook: str,
        variables: Callable[[Sequence[HostAddress]], Mapping[str, Any]],
        *,
        reboots: bool = True,
    ) -> None:
        """Set up the step. `reboots`: whether nodes may be rebooted; else those that need it wait for an operator."""
        self._playbooks = services.playbooks
        self._playbook = playbook
        self._variables = variables
        self._reach = services.access
        self._bmc_probe = services.bmcs
        self._hardware = services.hardware
        self._may_reboot = reboots
        self._reboots = Reboots(services.playbooks, services.permits)

    def run(self, nodes: Sequence[NodeState], intents: IntentLog, deadline: Deadline) -> Iterator[StepOutcome]:
        hosts, lost = self._reach.split(nodes, self.step)
        yield from lost
        asked: list[RebootRequest] = []
        reached = [node for node in nodes if node.name in hosts]
        for node, play in chain.from_iterable(self._play(reached, hosts, intents, deadline)):
            if not (play.value.ok and play.value.reboot_for):
                if play.value.ok:
                    settle([node], intents, "nothing more is asked for", rebooted=False)
                yield self._outcome(node, play, deadline)
            elif need(node, play.value.boot_id) is Need.IN_VAIN:
                yield _judged(node, in_vain(play.value), play)
            elif not self._may_reboot:
                yield _judged(node, not_allowed(play.value), play)
            else:
                asked.append(RebootRequest(node, hosts[node.name], play))
        yield from self._rebooted(asked, intents, deadline)

    def _play(
        self, nodes: Sequence[NodeState], hosts: Mapping[str, HostAddress], intents: IntentLog, deadline: Deadline
    ) -> Iterator[list[tuple[NodeState, Play]]]:
        """Yield the nodes with their plays, those together that ended meanwhile."""
        if not nodes:
            return
        by_name = {node.name: node for node in nodes}
        intents.intend_each(Act.CONFIGURE_PLAY, {node.id: (node.serial or node.name, None) for node in nodes})
        addresses = [hosts[name] for name in by_name]
        fenced = intents.fenced([node.id for node in nodes], deadline)
        variables = {**self._variables(addresses), **plays_before(nodes)}
        for plays in bursts(self._playbooks.run(self._playbook, addresses, variables, fenced)):
            ended = [(by_name[play.value.host], play) for play in plays]
            results = {node.id: (play.value.failed_task, _result(play.value)) for node, play in ended}
            intents.observed_each(Act.CONFIGURE_PLAY, results)
            yield ended

    def _rebooted(
        self, asked: Sequence[RebootRequest], intents: IntentLog, deadline: Deadline
    ) -> Iterator[StepOutcome]:
        """Reboot them, then apply the roles once more to those that came back."""
        by_name = {one.node.name: one for one in asked}
        back: dict[str, Play] = {}
        ordered = set[str]()
        for boot in self._reboots.run(asked, intents, deadline):
            ordered.add(boot.value.host)
            if boot.value.ok:
                back[boot.value.host] = boot
            else:
                yield self._lost(by_name[boot.value.host], boot, deadline)
        late = (one for one in asked if one.node.name not in ordered)
        yield from (_judged(one.node, not_in_time(one.play.value), one.play) for one in late)
        yield from self._applied_again({name: (by_name[name], boot) for name, boot in back.items()}, intents, deadline)

    def _applied_again(
        self, back: Mapping[str, tuple[RebootRequest, Play]], intents: IntentLog, deadline: Deadline
    ) -> Iterator[StepOutcome]:
        """Apply the roles once more to the nodes that came back. `back`: what each was asked, and its reboot."""
        hosts = {name: asked.host for name, (asked, _) in back.items()}
        for ended in self._play([asked.node for asked, _ in back.values()], hosts, intents, deadline):
            proven = [node for node, play in ended if play.value.ok and not play.value.reboot_for]
            settle(proven, intents, "rebooted, and nothing more is asked for", rebooted=True)
            yield from (self._again(node, play, *back[node.name], deadline) for node, play in ended)

    def _again(self, node: NodeState, play: Play, asked: RebootRequest, boot: Play, deadline: Deadline) -> StepOutcome:
        """Return the outcome of the play after the reboot."""
        earlier = (asked.play, boot)
        if not play.value.ok:
            return self._outcome(node, play, deadline, *earlier)
        if play.value.reboot_for:
            return _judged(node, in_vain(play.value), *earlier, play)
        why = f", rebooted for {' and '.join(asked.play.value.reboot_for)}"
        return _judged(node, _passed(asked.play.value.changed + play.value.changed, why), *earlier, play)

    def _lost(self, one: RebootRequest, boot: Play, deadline: Deadline) -> StepOutcome:
        """Return the outcome of a node that did not come back from its reboot."""
        bmc = self._bmc_probe.read(one.node.name, deadline)
        finding = not_back(boot.value, one.play.value.reboot_for, bmc.summary)
        evidence = (*evidence_of(one.play, boot), *bmc.evidence)
        return StepOutcome(one.node.id, with_evidence([finding], evidence), evidence)

    def _outcome(self, node: NodeState, play: Play, deadline: Deadline, *earlier: Play) -> StepOutcome:
        if play.value.ok:
            return _judged(node, _finding(play.value), *earlier, play)
        if not play.value.unreachable:
            return self._failed(node, play, deadline, *earlier)
        bmc = self._bmc_probe.read(node.name, deadline)
        evidence = (*evidence_of(*earlier, play), *bmc.evidence)
        root = host_unreachable(node, play.value.message, parse_ssh_failure(play.value.message), bmc)
        follows = Finding(
            check="configure",
            verdict=Verdict.INCONCLUSIVE,
            code=Code.NOT_REACHED,
            cause="not reached",
            root=root.key,
            deterministic=False,
            remedy=root.remedy,
        )
        findings = (replace(root, evidence=()), follows)
        return StepOutcome(node.id, with_evidence(findings, evidence), evidence)

    def _failed(self, node: NodeState, play: Play, deadline: Deadline, *earlier: Play) -> StepOutcome:
        """Return the outcome of a failed task: what is broken in the machine is its cause, where anything is."""
        task = _finding(play.value)
        host = self._reach.address(node)
        if self._hardware is None or host is None:
            return _judged(node, task, *earlier, play)
        faults, seen = self._hardware.look(node, host, deadline)
        plays = evidence_of(*earlier, play)
        found = explained(with_evidence([task], plays)[0], faults)
        return StepOutcome(node.id, with_evidence(found, seen), (*plays, *seen))


def _result(play: PlayOutcome) -> ActResult:
    return ActResult.DONE if play.ok else ActResult.FAILED


def _judged(node: NodeState, finding: Finding, *plays: Play) -> StepOutcome:
    evidence = evidence_of(*plays)
    return StepOutcome(node.id, with_evidence([finding], evidence), evidence)


def _passed(changed: int, more: str = "") -> Finding:
    return passed("configure", f"configured, {changed} changes{more}")


def _finding(outcome: PlayOutcome) -> Finding:
    if outcome.ok:
        return _passed(outcome.changed)
    return Finding(
        check="configure",
        verdict=Verdict.FAIL,
        code=Code.TASK_FAILED,
        subject=outcome.failed_task,
        cause=f"task “{outcome.failed_task}” failed: {outcome.message}",
        remedy="repair what the task names (packages, repository, disk), then run clusterctl configure on it",
        deterministic=False,
    )
