"""Names after the evidence of the cables: devices in another device's place, and adapters in another order.

Both explain cables that differ; of both orders of inference the one with more right cables is taken.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from clusterctl.cabling.explain.adapter_names import adapter_maps, renamed_ports
from clusterctl.cabling.explain.enumeration import NameMap
from clusterctl.cabling.explain.identity import Kinds, vote
from clusterctl.cabling.names import Named, ObservedCable, named_cables, peers_of
from clusterctl.fleet.fabric.topology import DeviceKind, Fabric, PortId
from clusterctl.fleet.fabric.wiring import PortName, WiringPlan


@dataclass(frozen=True, slots=True)
class Identified:
    """Names and cables after devices were `renamed` (own name → name) and the `maps` of adapters applied."""

    names: Mapping[PortId, PortName]
    cables: tuple[ObservedCable, ...]
    renamed: Mapping[str, str]
    maps: tuple[NameMap, ...] = ()

    def right(self, peers: Mapping[PortName, PortName]) -> int:
        """Return the number of cables that are as planned."""
        ends = (tuple(cable.ends) for cable in self.cables if len(cable.ends) == 2)
        return sum(peers.get(a) == b for a, b in ends)


def identified(plan: WiringPlan, fabric: Fabric, named: Named, own: Mapping[str, str]) -> Identified:
    """Return the names. `own`: names that several devices have, by replacement name."""
    peers = peers_of(plan)
    start = Identified(named.ports, named_cables(fabric, named.ports), {})
    usual = _with_maps(_voted(start, plan, fabric, own), plan, fabric, named)
    early = tuple(found for found in _maps(start, plan, named) if found.proven)
    if not early or {host for found in early for host in found.hosts} <= {h for m in usual.maps for h in m.hosts}:
        return usual
    names = renamed_ports(start.names, early)
    ordered = Identified(names, named_cables(fabric, names), {}, early)
    other = _with_maps(_voted(ordered, plan, fabric, own), plan, fabric, named)
    return max(usual, other, key=lambda one: one.right(peers))


def _voted(start: Identified, plan: WiringPlan, fabric: Fabric, own: Mapping[str, str]) -> Identified:
    adapters = {name.device for port, name in start.names.items() if fabric.devices[port.guid].kind is DeviceKind.CA}
    renamed = vote(start.cables, peers_of(plan), Kinds(frozenset(adapters), plan.hosts), own)
    if not renamed:
        return start
    names = {port: PortName(renamed.get(name.device, name.device), name.port) for port, name in start.names.items()}
    return Identified(names, named_cables(fabric, names), renamed, start.maps)


def _with_maps(one: Identified, plan: WiringPlan, fabric: Fabric, named: Named) -> Identified:
    maps = _maps(one, plan, named)
    if not maps:
        return one
    names = renamed_ports(one.names, maps)
    return Identified(names, named_cables(fabric, names), one.renamed, (*one.maps, *maps))


def _maps(one: Identified, plan: WiringPlan, named: Named) -> tuple[NameMap, ...]:
    proven = frozenset(name for port, name in one.names.items() if port.guid in named.proven)
    done = {host for found in one.maps for host in found.hosts}
    return adapter_maps(one.cables, peers_of(plan), plan.hosts - done, proven)
