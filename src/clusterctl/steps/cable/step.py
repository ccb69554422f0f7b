"""cable: every InfiniBand cable against the wiring plan. One reading of the fabric judges the whole batch."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from clusterctl.cabling.explain.findings import faults_of_fabric, findings_by_node, held_by_fabric
from clusterctl.cabling.explain.verify import verify
from clusterctl.cabling.mass_failure import cabling_mass_failure
from clusterctl.cabling.names import Hosts
from clusterctl.fleet.errors import ParseError
from clusterctl.fleet.fabric.history import FabricReading
from clusterctl.fleet.fabric.topology import Fabric
from clusterctl.fleet.fabric.wiring import WiringPlan
from clusterctl.fleet.finding import Digest, Finding, Observed, Verdict
from clusterctl.fleet.finding_code import Code
from clusterctl.fleet.hardware.sku import Sku
from clusterctl.fleet.node import Step
from clusterctl.fleet.state import NodeState
from clusterctl.formats.infiniband.ibnetdiscover import parse_ibnetdiscover
from clusterctl.ports import Deadline, FabricReader
from clusterctl.steps.cable.fabric_record import FabricRecord
from clusterctl.steps.cable.link_health import LinkCollector, warnings_by_node
from clusterctl.steps.executor.intent_log import IntentLog
from clusterctl.steps.executor.step import StepOutcome


@dataclass(frozen=True, slots=True)
class Wiring:
    """What the fabric is compared with.

    hosts                the adapters' GUIDs that are known from elsewhere
    most_broken_percent  of the fabric; no node is judged by a fabric that is more broken
    """

    plan: WiringPlan
    hosts: Callable[[], Hosts]
    most_broken_percent: float


class Cable:
    """Reads the fabric, and again after `settle_s` for nodes with links that are not right: links take time to train.

    `collector` reads the counters of the links with the first reading; bad links of a node are warnings.
    Faults between switches go into the fabric's history, and hold only nodes that they name.
    """

    step = Step.CABLE
    minimum = 1
    linger_s = 2.0
    at_once = 2

    def __init__(
        self,
        reader: FabricReader,
        record: FabricRecord,
        wiring: Wiring,
        skus: Mapping[str, Sku],
        settle_s: float,
        collector: LinkCollector | None = None,
    ) -> None:
        self._reader = reader
        self._record = record
        self._wiring = wiring
        self._skus = skus
        self._settle_s = settle_s
        self._collector = collector

    def run(self, nodes: Sequence[NodeState], intents: IntentLog, deadline: Deadline) -> Iterator[StepOutcome]:
        del intents  # the fabric is read, never changed
        first = self._read(nodes, deadline, self._collector)
        wrong = [node for node in nodes if not _right(first[node.name])]
        yield from (first[node.name] for node in nodes if node not in wrong)
        if wrong:
            deadline.sleep(self._settle_s, "waiting for links to train")
            second = self._read(wrong, deadline)
            yield from (second[node.name] for node in wrong)

    def _read(
        self, nodes: Sequence[NodeState], deadline: Deadline, collector: LinkCollector | None = None
    ) -> dict[str, StepOutcome]:
        """Return the outcomes of one reading by node name. The reading is kept, unless it cannot be parsed."""
        reading = self._reader.ibnetdiscover(deadline)
        digests = tuple(item.digest for item in reading.evidence)
        try:
            seen = parse_ibnetdiscover(reading.value)
        except ParseError as error:
            found = _unread(error, [node.name for node in nodes], digests)
        else:
            found = self._judge(seen, nodes, reading)
            health = collector.collect(seen, reading, deadline) if collector is not None else None
            if health is not None:
                warned = warnings_by_node(health, [node.name for node in nodes])
                found = {name: (*own, *warned[name]) for name, own in found.items()}
        return {node.name: StepOutcome(node.id, found[node.name], reading.evidence) for node in nodes}

    def _judge(
        self, seen: Fabric, nodes: Sequence[NodeState], reading: Observed[str]
    ) -> Mapping[str, tuple[Finding, ...]]:
        digests = tuple(item.digest for item in reading.evidence)
        wiring, hosts = self._wiring, self._wiring.hosts()
        found: dict[str, tuple[Finding, ...]] = {}
        for rate, names in _by_rate(nodes, self._skus).items():
            verification = verify(wiring.plan, seen, hosts, host_gbps=rate)
            stop = cabling_mass_failure(verification, wiring.most_broken_percent)
            if stop is None:
                found |= findings_by_node(verification, names, digests)
            else:
                found |= held_by_fabric(stop.reason, names, digests)
        faults = faults_of_fabric(verification, wiring.most_broken_percent)
        self._record.write(FabricReading(seen, faults=faults), reading.evidence)
        return found


def _unread(error: ParseError, names: Sequence[str], digests: tuple[Digest, ...]) -> Mapping[str, tuple[Finding, ...]]:
    finding = Finding(
        check="cable",
        verdict=Verdict.INCONCLUSIVE,
        code=Code.FABRIC_UNREADABLE,
        fault="fabric",
        cause=f"the fabric could not be read: {error.message}",
        remedy="run ibnetdiscover by hand and repair what it reports; check that a subnet manager runs",
        deterministic=False,
        evidence=digests,
    )
    return dict.fromkeys(names, (finding,))


def _by_rate(nodes: Sequence[NodeState], skus: Mapping[str, Sku]) -> dict[float | None, list[str]]:
    """Return the nodes' names by the rate (Gb/s) that their SKU's links must have."""
    groups: dict[float | None, list[str]] = {}
    for node in nodes:
        sku = skus.get(node.sku)
        groups.setdefault(float(sku.hca_rate_gbps) if sku else None, []).append(node.name)
    return groups


def _right(outcome: StepOutcome) -> bool:
    return all(finding.verdict.admits for finding in outcome.findings)
