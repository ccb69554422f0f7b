"""The cable step of a site with an Ethernet plan: in addition to InfiniBand, the hosts' network cables by LLDP."""

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
from clusterctl.steps.executor.intent_log import IntentLog
from clusterctl.steps.executor.reachability import SshAccess
from clusterctl.steps.executor.step import StepOutcome, StepRunner, with_evidence

NodesByName = Callable[[Iterable[str]], Sequence[NodeState]]
"""Returns the nodes of these names, as far as they are known."""


@dataclass(frozen=True, slots=True)
class CableWithEthernet:
    """`runner`, and to each of its outcomes the finding `ethernet_cable`.

    Hosts with cables that are not right are read again after `settle_s`: a host that has just booted has received no
    LLDP frame yet (lldpd and most switches send one every 30 s). Hosts that seem to have each other's cable are read
    then, too, whatever their stage, so that a swap is recognised.
    """

    runner: StepRunner
    plan: WiringPlan
    reader: LldpReader
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

    def run(self, nodes: Sequence[NodeState], intents: IntentLog, deadline: Deadline) -> Iterator[StepOutcome]:
        readings = self._read(nodes, deadline)
        settled = deadline.within(self.settle_s)
        names = {node.id: node.name for node in nodes}
        first = self._judge(names.values(), readings)
        waiting = []
        for outcome in self.runner.run(nodes, intents, deadline):
            if first.right(names[outcome.node]):
                yield first.joined_to(outcome, names[outcome.node], readings)
            else:
                waiting.append(outcome)
        if not waiting:
            return
        deadline.sleep(settled.remaining, "waiting for LLDP frames")
        again = [node for node in nodes if node.id in {outcome.node for outcome in waiting}]
        readings = readings.updated(self._read([*again, *self._others(names.values(), first)], deadline))
        second = self._judge((node.name for node in again), readings)
        yield from (second.joined_to(outcome, names[outcome.node], readings) for outcome in waiting)

    def _read(self, nodes: Sequence[NodeState], deadline: Deadline) -> LldpReadings:
        hosts, lost = self.reach.split(nodes, self.step)
        readings = self.reader.read(hosts.values(), deadline)
        unknown = {outcome.node for outcome in lost}
        for node in nodes:
            if node.id in unknown:
                readings.unheard[node.name] = MissingReport(
                    "its address or host key is unknown", "run clusterctl install on it"
                )
        return readings

    def _judge(self, names: Iterable[str], readings: LldpReadings) -> _Judgement:
        verification = verify_ethernet(self.plan, readings.reports, readings.reasons)
        findings = ethernet_findings(self.plan, verification, names, readings.unheard)
        return _Judgement(findings, tuple(explanation.nodes for explanation in verification.explanations))

    def _others(self, names: Iterable[str], first: _Judgement) -> Sequence[NodeState]:
        """Return nodes outside of the batch that a fault names, too."""
        named = {node for together in first.together for node in together}
        others = self.others(sorted(named - set(names)))
        return [node for node in others if self.reach.address(node) is not None]


@dataclass(frozen=True, slots=True)
class _Judgement:
    """Findings by node, and which nodes are named together: the findings of one rest on the readings of all."""

    findings: Mapping[str, tuple[Finding, ...]]
    together: tuple[tuple[str, ...], ...]

    def right(self, name: str) -> bool:
        return all(finding.verdict.admits for finding in self.findings[name])

    def joined_to(self, outcome: StepOutcome, name: str, readings: LldpReadings) -> StepOutcome:
        """Return the outcome with the node's findings, and the evidence of all nodes that they rest on."""
        parties = dict.fromkeys([name, *(node for nodes in self.together if name in nodes for node in nodes)])
        evidence = tuple(item for party in parties for item in readings.evidence.get(party, ()))
        findings = (*outcome.findings, *with_evidence(self.findings[name], evidence))
        return replace(outcome, findings=findings, evidence=(*outcome.evidence, *evidence))
