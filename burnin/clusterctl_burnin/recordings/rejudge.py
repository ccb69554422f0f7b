"""Recorded evidence judged again, under the limits of today, and against the whole recorded fleet."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from clusterctl.fleet.finding import Finding, Verdict, worst
from clusterctl.fleet.hardware.sku import Sku
from clusterctl.fleet.network.host_network import HostNetwork
from clusterctl_burnin.alike import Traits, traits, unlike
from clusterctl_burnin.check import Check, Expected
from clusterctl_burnin.fleet_metrics import samples
from clusterctl_burnin.fleet_stats import Sample, Unjudged, compare, shared_answers
from clusterctl_burnin.kernel_log.slot_power import SLOT_POWER, settled
from clusterctl_burnin.limits.limit import Limits
from clusterctl_burnin.loads.node_load import NodeLoad
from clusterctl_burnin.recordings.recording import Recording
from clusterctl_burnin.sweep import judge

NEEDS_THE_SITE = "host_network"
NEEDS_THE_CLOCK = "clock_offset"


@dataclass(frozen=True, slots=True)
class RecordedMachineKind:
    """What nodes of one SKU are judged by."""

    sku: Sku
    limits: Limits


@dataclass(frozen=True, slots=True)
class NodeVerdict:
    """`not_judged`: checks that need data that the recording does not have."""

    node: str
    findings: tuple[Finding, ...]
    not_judged: tuple[str, ...] = ()

    @property
    def verdict(self) -> Verdict:
        return worst(finding.verdict for finding in self.findings)


@dataclass(frozen=True, slots=True)
class JudgedRecording:
    """One recording by itself, and what of it is compared with its fleet. Its raw output is not kept."""

    verdict: NodeVerdict
    population: str
    samples: tuple[Sample, ...]
    traits: Traits


@dataclass(frozen=True, slots=True)
class Rejudging:
    """Judges recordings one by one, so that a fleet's raw output is never held as a whole.

    `solo`: loads of one node, judged of those recordings that have their answers.
    """

    checks: Sequence[Check]
    solo: Sequence[NodeLoad] = ()

    def judged(self, recording: Recording, kind: RecordedMachineKind) -> JudgedRecording:
        readings, checks = recording.readings, self._checks_of(recording)
        expected = Expected(
            name=recording.node,
            serial=recording.serial,
            sku=kind.sku,
            limits=kind.limits,
            sent=recording.sent or readings.started,
            received=recording.received or readings.finished,
            driver_version=recording.driver_version,
            inventory=recording.inventory,
            network=HostNetwork(),
        )
        loads = [load.check(kind.limits) for load in self.solo]
        kept = [load for load in loads if readings.probes.keys() >= {probe.name for probe in load.probes}]
        judged = {check.name for check in (*checks, *kept)}
        not_judged = tuple(check.name for check in (*self.checks, *loads) if check.name not in judged)
        findings = judge([*checks, *kept], readings, expected).findings
        return JudgedRecording(
            NodeVerdict(recording.node, findings, not_judged),
            recording.population,
            tuple(samples(recording.node, recording.population, readings)),
            traits(readings),
        )

    def _checks_of(self, recording: Recording) -> list[Check]:
        """Return the checks that a recording can be judged by."""
        clocked = recording.sent is not None and recording.received is not None
        left_out = {NEEDS_THE_SITE} if clocked else {NEEDS_THE_SITE, NEEDS_THE_CLOCK}
        return [check for check in self.checks if check.name not in left_out]


def verdicts(judged: Iterable[JudgedRecording]) -> tuple[tuple[NodeVerdict, ...], tuple[Unjudged, ...]]:
    """Return all nodes by name, with what sets them apart from their fleet; and what could not be compared."""
    found, fleets = [], defaultdict[str, dict[str, Traits]](dict)
    for one in judged:
        found.append(one)
        fleets[one.population][one.verdict.node] = one.traits
    samples = [sample for one in found for sample in one.samples]
    compared, shared = compare(samples), _shared_slots(samples)
    odd = {node: unlike_it for hosts in fleets.values() for node, unlike_it in unlike(hosts).items()}
    nodes = (
        NodeVerdict(
            n.node,
            (*settled(n.findings, shared[one.population]), *compared.findings.get(n.node, ()), *odd.get(n.node, ())),
            n.not_judged,
        )
        for one, n in ((one, one.verdict) for one in found)
    )
    return tuple(sorted(nodes, key=lambda node: node.node)), compared.unjudged


def _shared_slots(found: Sequence[Sample]) -> Mapping[str, frozenset[str]]:
    """Return by population the adapters whose slots report too little power on other nodes too."""
    fleets = defaultdict[str, list[Sample]](list)
    for one in found:
        if one.metric == SLOT_POWER:
            fleets[one.population].append(one)
    return defaultdict(frozenset, {population: shared_answers(figures) for population, figures in fleets.items()})
