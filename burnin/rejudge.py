"""Recorded evidence judged again, under the limits of today, and against the whole recorded fleet."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from clusterctl.burnin.alike import Traits, traits, unlike
from clusterctl.burnin.check import Check, Expected
from clusterctl.burnin.fleet_metrics import samples
from clusterctl.burnin.fleet_stats import Sample, Unjudged, compare
from clusterctl.burnin.limit import Limits
from clusterctl.burnin.loads.solo_load import SoloLoad
from clusterctl.burnin.recording import Recording
from clusterctl.burnin.sweep import judge
from clusterctl.fleet.finding import Finding, Verdict, worst
from clusterctl.fleet.host_network import HostNetwork
from clusterctl.fleet.sku import Sku

NEEDS_THE_SITE = "host_network"
NEEDS_THE_CLOCK = "clock_offset"


@dataclass(frozen=True, slots=True)
class Kind:
    """What nodes of one SKU are judged by."""

    sku: Sku
    limits: Limits


@dataclass(frozen=True, slots=True)
class NodeVerdict:
    """`not_judged`: checks that need what the recording has not kept; nothing is said of them."""

    node: str
    findings: tuple[Finding, ...]
    not_judged: tuple[str, ...] = ()

    @property
    def verdict(self) -> Verdict:
        return worst(finding.verdict for finding in self.findings)


@dataclass(slots=True)
class Rejudging:
    """Takes recordings one by one, so that a fleet's raw output is never held as a whole.

    `solo`: loads of one node, judged of those recordings that have their answers.
    """

    kinds: Mapping[str, Kind]
    checks: Sequence[Check]
    solo: Sequence[SoloLoad] = ()
    _samples: list[Sample] = field(default_factory=list)
    _nodes: list[NodeVerdict] = field(default_factory=list)
    _traits: dict[str, dict[str, Traits]] = field(default_factory=dict)

    def add(self, recording: Recording) -> None:
        left_out = {NEEDS_THE_SITE} | (
            {NEEDS_THE_CLOCK} if recording.sent is None or recording.received is None else set()
        )
        checks = [check for check in self.checks if check.name not in left_out]
        kind, readings = self.kinds[recording.sku], recording.readings
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
        kept = [load for load in loads if all(probe.name in readings.probes for probe in load.probes)]
        not_judged = (
            *(check.name for check in self.checks if check.name in left_out),
            *(load.name for load in loads if load not in kept),
        )
        self._nodes.append(
            NodeVerdict(recording.node, judge([*checks, *kept], readings, expected).findings, not_judged)
        )
        self._samples += samples(recording.node, recording.population, readings)
        self._traits.setdefault(recording.population, {})[recording.node] = traits(readings)

    def verdicts(self) -> tuple[tuple[NodeVerdict, ...], tuple[Unjudged, ...]]:
        """All nodes by name, with what sets them apart from their fleet; and what could not be compared."""
        compared = compare(self._samples)
        odd = {node: found for hosts in self._traits.values() for node, found in unlike(hosts).items()}
        nodes = (
            NodeVerdict(n.node, (*n.findings, *compared.findings.get(n.node, ()), *odd.get(n.node, ())), n.not_judged)
            for n in self._nodes
        )
        return tuple(sorted(nodes, key=lambda node: node.node)), compared.unjudged
