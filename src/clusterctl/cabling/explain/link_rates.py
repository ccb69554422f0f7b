"""Links that are slower than they should be.

A link should run at the rate that the plan gives it, else at the rate that is required of host links, else at the usual
rate of its class. The plan's and the usual rate are capped by what the devices at both ends can do.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache

from clusterctl.cabling.actions import Ends
from clusterctl.cabling.explain.explanation import CablingExplanation, FaultKind
from clusterctl.cabling.labels import PlanLabels
from clusterctl.cabling.names import ObservedCable
from clusterctl.fleet.fabric.topology import LANE_GBPS, Device, Fabric
from clusterctl.fleet.node import Guid

_Class = tuple[bool, tuple[str, ...]]
"""Whether one end is a host, and the device names without numbers (compute and storage differ)."""
_ENOUGH = 4
"""Classes with fewer links than this prove nothing: their links are compared with all links of their side."""
_DIGITS = re.compile(r"\d+")
_LANES = 4
_FASTEST: Mapping[int, str] = {
    **dict.fromkeys((0x1003, 0x1007, 0x1011, 0xC738, 0xC739), "FDR"),  # ConnectX-3, -3 Pro, Connect-IB, SwitchX
    **dict.fromkeys((0x1013, 0x1017, 0x1019, 0xA2D2, 0xCB20, 0xCF08), "EDR"),  # ConnectX-4, -5, BlueField, Switch-IB
    **dict.fromkeys((0x101B, 0xA2D6, 0xD2F0), "HDR"),  # ConnectX-6, BlueField-2, Quantum
    **dict.fromkeys((0x1021, 0xA2DC, 0xD2F2), "NDR"),  # ConnectX-7, BlueField-3, Quantum-2
    **dict.fromkeys((0x1023, 0xD2F4), "XDR"),  # ConnectX-8, Quantum-3
}
"""Fastest speed by device ID (pci-ids.ucw.cz, vendor 15b3; NVIDIA's data sheets). Others have no cap."""


def capable_gbps(device: Device) -> float:
    """Return the fastest rate of the device's ports in Gb/s; infinite where unknown."""
    speed = _FASTEST.get(device.device_id)
    return _LANES * LANE_GBPS[speed] if speed else float("inf")


@dataclass(frozen=True, slots=True)
class _Rates:
    """`planned` rates by the cables' ends, `caps` of devices, and the required rate of other host links."""

    planned: Mapping[Ends, float]
    caps: Mapping[Guid, float]
    host_gbps: float | None

    def expected(self, cable: ObservedCable, usual: float, *, to_host: bool) -> float:
        """Return the rate that a cable must have. `usual` is the rate of most cables of its class."""
        cap = min(self.caps[cable.link.a.guid], self.caps[cable.link.b.guid])
        if cable.ends in self.planned:
            return min(self.planned[cable.ends], cap)
        if to_host and self.host_gbps is not None:
            return self.host_gbps
        return min(usual, cap)


def slow_links(
    cables: Iterable[ObservedCable], labels: PlanLabels, host_gbps: float | None, fabric: Fabric
) -> tuple[CablingExplanation, ...]:
    """Return slow links. `host_gbps` is the required rate of host links that the plan gives no rate."""
    planned: dict[Ends, float] = {cable.ends: cable.gbps for cable in labels.plan.cables if cable.gbps}
    caps = {guid: capable_gbps(device) for guid, device in fabric.devices.items()}
    rates = _Rates(planned, caps, host_gbps)
    found = []
    for (to_host, _), members in _classes(cables, labels).items():
        usual = _usual(members)
        lanes = Counter(cable.link.width for cable in members).most_common(1)[0][0]
        for cable in members:
            expected = rates.expected(cable, usual, to_host=to_host)
            if cable.link.gbps < expected:
                found.append(_explain(cable, expected, lanes, labels))
    return tuple(found)


def _classes(cables: Iterable[ObservedCable], labels: PlanLabels) -> dict[_Class, list[ObservedCable]]:
    """Return the cables by class; those of classes that prove nothing are in one class for hosts and one for trunks."""
    classes: dict[_Class, list[ObservedCable]] = defaultdict(list)
    for cable in cables:
        classes[_to_host(cable, labels), _stems(cable)].append(cable)
    for key in [key for key, members in classes.items() if key[1] and len(members) < _ENOUGH]:
        classes[key[0], ()] += classes.pop(key)
    return classes


def _to_host(cable: ObservedCable, labels: PlanLabels) -> bool:
    return any(end.device in labels.plan.hosts for end in cable.ends)


def _stems(cable: ObservedCable) -> tuple[str, ...]:
    return tuple(sorted(_stem(end.device) for end in cable.ends))


@lru_cache(1 << 16)
def _stem(device: str) -> str:
    return _DIGITS.sub("#", device)


def _usual(cables: Iterable[ObservedCable]) -> float:
    """Return the most common rate; of equally common ones the higher."""
    counts = Counter(cable.link.gbps for cable in cables)
    return max(counts, key=lambda gbps: (counts[gbps], gbps))


def _explain(cable: ObservedCable, expected: float, lanes: int, labels: PlanLabels) -> CablingExplanation:
    first, second = sorted(cable.ends, key=lambda end: (end.device not in labels.plan.hosts, end))
    link = f"{labels.port(first)} – {labels.port(second)}"
    return CablingExplanation(
        kind=FaultKind.DOWN_WIDTH if cable.link.width < lanes else FaultKind.DOWN_SPEED,
        cause=f"the link {link} runs at {cable.link.rate} ({cable.link.gbps:g} Gb/s) instead of {expected:g} Gb/s",
        action=f"{labels.at(first.device)}{labels.port(first)}: clean and reseat the cable to {labels.port(second)}, "
        "then replace it",
        nodes=tuple(sorted(end.device for end in cable.ends if end.device in labels.plan.hosts)),
        ports=(first, second),
        rack=labels.rack(first.device, second.device),
    )
