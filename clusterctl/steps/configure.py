"""configure: the roles that make a GPU host of an installed OS, through Ansible."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from clusterctl.fleet.finding import Finding, Observed, Verdict
from clusterctl.fleet.node import Verb
from clusterctl.fleet.state import NodeState
from clusterctl.ports import Deadline, HostAddress, Playbooks, PlayOutcome
from clusterctl.steps.hosts import Reach
from clusterctl.steps.reachable import silent
from clusterctl.steps.step import Acts, Outcome, with_evidence
from clusterctl.steps.witness import Witness

ACT = "configure.play"


class Configure:
    """One play over a batch; each host's own result is its outcome."""

    verb = Verb.CONFIGURE
    minimum = 1
    linger_s = 3.0
    at_once = 4

    def __init__(
        self,
        playbooks: Playbooks,
        playbook: str,
        variables: Callable[[Sequence[HostAddress]], Mapping[str, Any]],
        reach: Reach,
        witness: Witness,
    ) -> None:
        self._playbooks = playbooks
        self._playbook = playbook
        self._variables = variables
        self._reach = reach
        self._witness = witness

    def run(self, nodes: Sequence[NodeState], acts: Acts, deadline: Deadline) -> Iterator[Outcome]:
        hosts, lost = self._reach.split(nodes, self.verb)
        yield from lost
        by_name = {node.name: node for node in nodes if node.name in hosts}
        for node in by_name.values():
            acts.intend(node.id, ACT, node.serial or node.name)
        if not hosts:
            return
        addresses = list(hosts.values())
        fenced = acts.fenced([node.id for node in by_name.values()], deadline)
        for play in self._playbooks.run(self._playbook, addresses, self._variables(addresses), fenced):
            node = by_name[play.value.host]
            acts.observed(node.id, ACT, "ok" if play.value.ok else play.value.failed_task)
            yield self._outcome(node, play, deadline)

    def _outcome(self, node: NodeState, play: Observed[PlayOutcome], deadline: Deadline) -> Outcome:
        if not play.value.unreachable:
            return Outcome(node.id, with_evidence([_finding(play)], play.evidence), play.evidence)
        testimony = self._witness.ask(node.name, deadline)
        evidence = (*play.evidence, *testimony.evidence)
        root = silent(node, play.value.message, testimony)
        follows = Finding(
            "configure",
            Verdict.INCONCLUSIVE,
            cause="not reached",
            root=root.key,
            deterministic=False,
            remedy=root.remedy,
        )
        findings = (replace(root, evidence=()), follows)
        return Outcome(node.id, with_evidence(findings, evidence), evidence)


def _finding(play: Observed[PlayOutcome]) -> Finding:
    outcome = play.value
    if outcome.ok:
        return Finding("configure", Verdict.PASS, cause=f"configured, {outcome.changed} changes")
    return Finding(
        "configure",
        Verdict.FAIL,
        subject=outcome.failed_task,
        cause=f"task “{outcome.failed_task}” failed: {outcome.message}",
        remedy="mend what the task names (packages, repository, disk), then run clusterctl configure on it",
        deterministic=False,
    )
