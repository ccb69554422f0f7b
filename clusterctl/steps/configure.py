"""configure: the roles that make a GPU host of an installed OS, through Ansible."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from clusterctl.fleet.finding import Finding, Observed, Verdict
from clusterctl.fleet.node import Verb
from clusterctl.fleet.state import NodeState
from clusterctl.ports import Deadline, HostAddress, Playbooks, PlayOutcome
from clusterctl.steps.hosts import Reach
from clusterctl.steps.step import Acts, Outcome, with_evidence

ACT = "configure.play"


class Configure:
    """One play over a batch; each host's own result is its outcome."""

    verb = Verb.CONFIGURE
    minimum = 1
    linger_s = 3.0

    def __init__(
        self,
        playbooks: Playbooks,
        playbook: str,
        variables: Callable[[Sequence[HostAddress]], Mapping[str, Any]],
        reach: Reach,
    ) -> None:
        self._playbooks = playbooks
        self._playbook = playbook
        self._variables = variables
        self._reach = reach

    def run(self, nodes: Sequence[NodeState], acts: Acts, deadline: Deadline) -> Iterator[Outcome]:
        hosts, lost = self._reach.split(nodes, self.verb)
        yield from lost
        by_name = {node.name: node for node in nodes if node.name in hosts}
        for node in by_name.values():
            acts.intend(node.id, ACT, node.serial or node.name)
        if not hosts:
            return
        addresses = list(hosts.values())
        for play in self._playbooks.run(self._playbook, addresses, self._variables(addresses), deadline):
            node = by_name[play.value.host]
            acts.observed(node.id, ACT, "ok" if play.value.ok else play.value.failed_task)
            yield Outcome(node.id, with_evidence([_finding(node, play)], play.evidence), play.evidence)


def _finding(node: NodeState, play: Observed[PlayOutcome]) -> Finding:
    outcome = play.value
    if outcome.ok:
        return Finding("configure", Verdict.PASS, cause=f"configured, {outcome.changed} changes")
    if outcome.unreachable:
        remedy = f"attach a console to {node.name} ({node.location}): check its network and sshd"
        return Finding(
            "configure", Verdict.FAIL, cause=f"not reached: {outcome.message}", remedy=remedy, deterministic=False
        )
    return Finding(
        "configure",
        Verdict.FAIL,
        subject=outcome.failed_task,
        cause=f"task “{outcome.failed_task}” failed: {outcome.message}",
        remedy="mend what the task names (packages, repository, disk), then run clusterctl configure on it",
        deterministic=False,
    )
