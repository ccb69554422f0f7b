"""The cable step of a site with an Ethernet plan: beside the InfiniBand cables, the hosts' network cables by LLDP."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from clusterctl.cabling.ethernet.findings import MissingReport, ethernet_findings
from clusterctl.cabling.ethernet.verify import verify_ethernet
from clusterctl.fleet.fabric.wiring import WiringPlan
from clusterctl.fleet.finding import Finding
from clusterctl.fleet.node import Step
from clusterctl.fleet.state import NodeState
from clusterctl.ports import Deadline
from clusterctl.steps.cable.lldp import LldpReader, LldpReadings
from clusterctl.steps.executor.reachability import SshAccess
from clusterctl.steps.executor.step import IntentLog, Outcome, StepRunner, with_evidence

NodesByName = Callable[[Iterable[str]], Sequence[NodeState]]
"""The nodes of these names, as far as they are known."""


@dataclass(frozen=True, slots=True)
class CableWithEthernet:
    """`runner`, and to each of its outcomes the finding `ethernet_cable`.

    Hosts whose cables do not look right are asked again after `settle_s`: a host that has just booted has not been
    spoken to yet (lldpd and most switches speak every 30 s). Then also those who are said to have each other's cable,
    wherever they stand, so that a swap is known as one.
    """

    runner: StepRunner
    plan: WiringPlan
    listener: LldpReader
    reach: SshAccess
    others: NodesByName
    settle_s: float

    @property
    def step(self) -> Step:
        return self.runner.step

    @property
    def minimum(self) -> int:
        return self.runner.minimum

    @property
    def linger_s(self) -> float:
        return self.runner.linger_s

    @property
    def at_once(self) -> int:
        return self.runner.at_once

    def run(self, nodes: Sequence[NodeState], acts: IntentLog, deadline: Deadline) -> Iterator[Outcome]:
        heard = self._listen(nodes, deadline)
        settled = deadline.within(self.settle_s)
        names = {node.id: node.name for node in nodes}
        first = self._judge(names.values(), heard)
        waiting = []
        for outcome in self.runner.run(nodes, acts, deadline):
            if first.right(names[outcome.node]):
                yield first.joined_to(outcome, names[outcome.node], heard)
            else:
                waiting.append(outcome)
        if not waiting:
            return
        deadline.sleep(settled.remaining, "waiting to be heard by LLDP")
        again = [node for node in nodes if node.id in {outcome.node for outcome in waiting}]
        heard = heard.updated(self._listen([*again, *self._strangers(names.values(), first)], deadline))
        second = self._judge((node.name for node in again), heard)
        yield from (second.joined_to(outcome, names[outcome.node], heard) for outcome in waiting)

    def _listen(self, nodes: Sequence[NodeState], deadline: Deadline) -> LldpReadings:
        hosts, lost = self.reach.split(nodes, self.step)
        heard = self.listener.listen(hosts.values(), deadline)
        unknown = {outcome.node for outcome in lost}
        for node in nodes:
            if node.id in unknown:
                heard.unheard[node.name] = MissingReport(
                    "its address or host key is unknown", "run clusterctl install on it"
                )
        return heard

    def _judge(self, names: Iterable[str], heard: LldpReadings) -> _Judgement:
        verification = verify_ethernet(self.plan, heard.reports, heard.reasons)
        findings = ethernet_findings(self.plan, verification, names, heard.unheard)
        return _Judgement(findings, tuple(explanation.nodes for explanation in verification.explanations))

    def _strangers(self, names: Iterable[str], first: _Judgement) -> Sequence[NodeState]:
        """Nodes outside the batch that what is wrong names too."""
        named = {node for together in first.together for node in together}
        others = self.others(sorted(named - set(names)))
        return [node for node in others if self.reach.address(node) is not None]


@dataclass(frozen=True, slots=True)
class _Judgement:
    """Findings by node, and which nodes are named together: what is said of one rests on all of their words."""

    findings: Mapping[str, tuple[Finding, ...]]
    together: tuple[tuple[str, ...], ...]

    def right(self, name: str) -> bool:
        return all(finding.verdict.admits for finding in self.findings[name])

    def joined_to(self, outcome: Outcome, name: str, heard: LldpReadings) -> Outcome:
        """The outcome with the node's findings, and the evidence of all who have a part in them."""
        parties = dict.fromkeys([name, *(node for nodes in self.together if name in nodes for node in nodes)])
        evidence = tuple(item for party in parties for item in heard.evidence.get(party, ()))
        findings = (*outcome.findings, *with_evidence(self.findings[name], evidence))
        return replace(outcome, findings=findings, evidence=(*outcome.evidence, *evidence))
