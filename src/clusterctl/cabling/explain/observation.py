"""The fabric in the plan's names: from GUIDs, node descriptions, neighbours and places; and the difference."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass

from clusterctl.cabling.difference import CablingDifference, Component, compare, components
from clusterctl.cabling.explain.absence import unit_of
from clusterctl.cabling.explain.enumeration import NameMap
from clusterctl.cabling.explain.identified import identified
from clusterctl.cabling.names import Hosts, NameClaim, ObservedCable, name_ports, named_cables
from clusterctl.fleet.fabric.topology import DeviceKind, Fabric, PortId
from clusterctl.fleet.fabric.wiring import PortName, WiringPlan
from clusterctl.fleet.node import Guid


@dataclass(frozen=True, slots=True)
class CablingObservation:
    """The observed fabric in the plan's names.

    renamed  own name of a device → name that its neighbours prove; `guids` identify these devices
    assumed  planned port → name of the unknown adapter taken for it
    refused  names that several devices have
    maps     adapter names that differ from the plan's
    respelled  device names that the plan spells in another way
    """

    names: Mapping[PortId, PortName]
    cables: tuple[ObservedCable, ...]
    difference: CablingDifference
    renamed: Mapping[str, str]
    guids: Mapping[str, tuple[Guid, ...]]
    assumed: Mapping[PortName, PortName]
    refused: tuple[NameClaim, ...]
    maps: tuple[NameMap, ...]
    respelled: Mapping[str, str]


def observe(plan: WiringPlan, fabric: Fabric, hosts: Hosts) -> CablingObservation:
    """Return the observation. `hosts` are GUIDs from an inventory, which override node descriptions."""
    named = name_ports(fabric, plan, hosts)
    own = _own_names(named.refused)
    found = identified(plan, fabric, named, own)
    names, cables, renamed = dict(found.names), found.cables, found.renamed
    difference = compare(plan, cables)
    assumed = _assumed(plan, fabric, names, difference)
    if assumed:
        names = {port: assumed.get(name, name) for port, name in names.items()}
        cables = named_cables(fabric, names)
        difference = compare(plan, cables)
    return CablingObservation(
        names=names,
        cables=cables,
        difference=difference,
        renamed=_proven_names(renamed, own),
        guids=_guids(named.ports, renamed),
        assumed={planned: seen for seen, planned in assumed.items()},
        refused=tuple(claim for claim in named.refused if not renamed.keys() >= set(claim.labels)),
        maps=found.maps,
        respelled=named.respelled,
    )


def _own_names(refused: Iterable[NameClaim]) -> dict[str, str]:
    """Return the own names of devices by the names that replace them."""
    return {label: claim.name.device for claim in refused if not claim.name.port for label in claim.labels}


def _proven_names(renamed: Mapping[str, str], own: Mapping[str, str]) -> dict[str, str]:
    """Return the names that neighbours prove, without those that are the devices' own."""
    return {device: name for device, name in renamed.items() if own.get(device) != name}


def _guids(names: Mapping[PortId, PortName], devices: Mapping[str, str]) -> dict[str, tuple[Guid, ...]]:
    found: dict[str, set[Guid]] = {device: set() for device in devices}
    for port, name in names.items():
        if name.device in found:
            found[name.device].add(port.guid)
    return {device: tuple(sorted(guids)) for device, guids in found.items()}


def _assumed(
    plan: WiringPlan, fabric: Fabric, names: Mapping[PortId, PortName], difference: CablingDifference
) -> dict[PortName, PortName]:
    known = {port.device for port in difference.planned_ports}
    unknown = {
        name
        for port, name in names.items()
        if name.device not in known and fabric.devices[port.guid].kind is DeviceKind.CA
    }
    if not unknown:
        return {}
    present = {unit_of(port) for port in difference.observed_ports}
    absent = {p for p in difference.planned_ports if p.device in plan.hosts and unit_of(p) not in present}
    return placed(components(difference.missing, difference.extra), unknown, absent)


def placed(
    components: Iterable[Component], unknown: AbstractSet[PortName], absent: AbstractSet[PortName]
) -> dict[PortName, PortName]:
    """Return the planned port that an unknown adapter's cabled port most likely is.

    It applies to adapters without a useful node description (`MT4129 ConnectX7`, `localhost HCA-1`). A path of
    differences from an unseen planned adapter to an unknown one becomes a cycle if both are the same adapter: then the
    plugs between are at most exchanged. `unknown`: ports of unknown adapters; `absent`: planned ports of unseen ones.
    """
    paths = (c.ports for c in components if not c.cycle and len(c.missing) == len(c.extra))
    ends = ((ports[way], ports[~way]) for ports in paths for way in (0, -1))
    return {seen: planned for planned, seen in ends if planned in absent and seen in unknown}
