"""cable: is every InfiniBand cable where the wiring plan says? One reading of the fabric judges the whole batch."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from clusterctl.cabling.findings import findings_by_node
from clusterctl.cabling.names import Hosts
from clusterctl.cabling.verify import verify
from clusterctl.fleet.errors import ParseError
from clusterctl.fleet.finding import Finding, Observed, Verdict
from clusterctl.fleet.node import Verb
from clusterctl.fleet.sku import Sku
from clusterctl.fleet.state import NodeState
from clusterctl.fleet.wiring import WiringPlan
from clusterctl.formats.ibnetdiscover import parse_ibnetdiscover
from clusterctl.ports import Deadline, FabricReader
from clusterctl.steps.step import Acts, Outcome


class Cable:
    """Reads the fabric, and again after `settle_s` for nodes that are not right yet: links train for a while."""

    verb = Verb.CABLE
    minimum = 1
    linger_s = 2.0

    def __init__(
        self,
        reader: FabricReader,
        plan: WiringPlan,
        hosts: Callable[[], Hosts],
        skus: Mapping[str, Sku],
        settle_s: float,
    ) -> None:
        self._reader = reader
        self._plan = plan
        self._hosts = hosts
        self._skus = skus
        self._settle_s = settle_s

    def run(self, nodes: Sequence[NodeState], acts: Acts, deadline: Deadline) -> Iterator[Outcome]:
        del acts  # the fabric is read, never changed
        first = self._look(nodes, deadline)
        wrong = [node for node in nodes if not _right(first[node.name])]
        yield from (first[node.name] for node in nodes if node not in wrong)
        if wrong:
            deadline.sleep(self._settle_s, "waiting for links to train")
            second = self._look(wrong, deadline)
            yield from (second[node.name] for node in wrong)

    def _look(self, nodes: Sequence[NodeState], deadline: Deadline) -> dict[str, Outcome]:
        """One reading, judged for each node by name."""
        fabric = self._reader.ibnetdiscover(deadline)
        found: dict[str, tuple[Finding, ...]] = {}
        for rate, members in _by_rate(nodes, self._skus).items():
            found |= self._judge(fabric, [node.name for node in members], rate)
        return {node.name: Outcome(node.id, found[node.name], fabric.evidence) for node in nodes}

    def _judge(
        self, fabric: Observed[str], names: Sequence[str], rate: float | None
    ) -> Mapping[str, tuple[Finding, ...]]:
        digests = tuple(item.digest for item in fabric.evidence)
        try:
            seen = parse_ibnetdiscover(fabric.value)
        except ParseError as error:
            finding = Finding(
                "cable",
                Verdict.INCONCLUSIVE,
                cause=f"the fabric could not be read: {error.message}",
                remedy="run ibnetdiscover by hand and mend what it says; is a subnet manager up?",
                deterministic=False,
                evidence=digests,
            )
            return dict.fromkeys(names, (finding,))
        return findings_by_node(verify(self._plan, seen, self._hosts(), host_gbps=rate), names, digests)


def _by_rate(nodes: Sequence[NodeState], skus: Mapping[str, Sku]) -> dict[float | None, list[NodeState]]:
    """Nodes by the rate (Gb/s) that their SKU's links must have."""
    groups: dict[float | None, list[NodeState]] = {}
    for node in nodes:
        sku = skus.get(node.sku)
        groups.setdefault(float(sku.hca_rate_gbps) if sku else None, []).append(node)
    return groups


def _right(outcome: Outcome) -> bool:
    return all(finding.verdict.admits for finding in outcome.findings)
