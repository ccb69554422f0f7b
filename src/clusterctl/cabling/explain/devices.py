"""Explanations for devices with a wrong, exchanged, duplicate or useless name, and for devices outside the plan."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet

from clusterctl.cabling.actions import Rename, TakeOut
from clusterctl.cabling.difference import CablingDifference
from clusterctl.cabling.explain.explanation import CablingExplanation, FaultKind
from clusterctl.cabling.explain.observation import CablingObservation
from clusterctl.cabling.labels import PlanLabels, shortened
from clusterctl.cabling.names import NameClaim, ObservedCable
from clusterctl.fleet.fabric.wiring import PortName

_GUID = re.compile(r" \[[0-9a-f]{16}\]$")
_FACTORY = 3
"""Unknown names of switches, or of hosts, from which on they are one finding: the names of another scheme."""


def factory_names(seen: CablingObservation, labels: PlanLabels) -> dict[str, str]:
    """Return the planned names of devices with own names that no plan has: of switches and of hosts, where many."""
    planned = labels.devices
    taken = set(seen.renamed)
    found = {own: name for own, name in seen.renamed.items() if own not in planned and name not in taken}
    hosts = {own: name for own, name in found.items() if name in labels.plan.hosts}
    switches = {own: name for own, name in found.items() if own not in hosts}
    return {own: name for some in (switches, hosts) if len(some) >= _FACTORY for own, name in some.items()}


def misnamed(
    seen: CablingObservation, labels: PlanLabels, known: AbstractSet[str] = frozenset()
) -> Iterator[CablingExplanation]:
    """Yield one for each cycle of exchanged devices, and for each chain of devices with another device's name.

    `known`: devices that need none.
    """
    renamed = {device: name for device, name in seen.renamed.items() if device not in known}
    done: set[str] = set()
    heads = [device for device in renamed if device not in renamed.values()]
    for start in (*heads, *renamed):
        if start in done:
            continue
        chain = [start]
        while (name := renamed[chain[-1]]) in renamed and name != start:
            chain.append(name)
        done.update(chain)
        yield _misnamed(chain, renamed, seen, labels)


def _cables_of(devices: Collection[str], cables: Iterable[ObservedCable]) -> list[ObservedCable]:
    return [cable for cable in cables if any(end.device in devices for end in cable.ends)]


def _misnamed(
    chain: list[str], renamed: Mapping[str, str], seen: CablingObservation, labels: PlanLabels
) -> CablingExplanation:
    ring = renamed[chain[-1]] == chain[0]
    first = renamed[chain[0]]
    involved = tuple(dict.fromkeys((*chain, *(renamed[device] for device in chain))))
    places = ", ".join(f"{device} is cabled as {renamed[device]}" for device in chain)
    either = "their names or their places are exchanged" if ring else "it has a wrong name, or is another device"
    cables = _cables_of(involved, seen.difference.right)
    return CablingExplanation(
        kind=FaultKind.EXCHANGED if ring else FaultKind.MISNAMED,
        cause=f"{places}: {either}",
        action=f"{labels.at(first)}{first}: compare serial numbers, then correct the names or move the devices; "
        "leave the cables",
        nodes=tuple(sorted(device for device in involved if device in labels.plan.hosts)),
        devices=involved,
        rack=labels.rack(*involved),
        links=len(cables),
        steps=tuple(Rename(device, PortName(renamed[device], ""), seen.guids[device]) for device in chain),
        tie=True,
    )


def duplicates(seen: CablingObservation, labels: PlanLabels) -> Iterator[CablingExplanation]:
    """Yield one for each name that several devices have without proof which is right.

    A name that no plan has, on devices in ports that the plan leaves free, is left to `explain_unknown_devices`.
    """
    foreign = {
        end for cable in seen.difference.extra if not cable.ends & seen.difference.planned_ports for end in cable.ends
    }
    for claim in seen.refused:
        if claim.name.device in labels.devices or not foreign.issuperset(seen.names[port] for port in claim.ports):
            yield _duplicate(claim, seen, labels)


def _duplicate(claim: NameClaim, seen: CablingObservation, labels: PlanLabels) -> CablingExplanation:
    name = str(claim.name) if claim.name.port else claim.name.device
    guids = sorted({port.guid for port in claim.ports})
    taken_for = [(port, seen.names[port]) for port in claim.ports if seen.names[port] in seen.assumed]
    cause = f"{len(guids)} devices have the name {name} (GUIDs {shortened(guids, 4)}): unknown which is which"
    where = labels.at(claim.name.device)
    hosts = {planned.device for _, planned in taken_for} | ({claim.name.device} & labels.plan.hosts)
    naming = "set the node description on each host, or give their GUIDs"
    if not claim.name.port and not hosts:
        naming = "name each switch by its GUID in a node-name map (clusterctl cable name), or give their GUIDs"
    if taken_for:
        cause += f"; {len(taken_for)} of them are in the place of adapters of {shortened(sorted(hosts), 4)}"
    return CablingExplanation(
        kind=FaultKind.DUPLICATE_NAME,
        cause=cause,
        action=f"{where}{name}: {naming}; then read the fabric again",
        nodes=tuple(sorted(hosts)),
        ports=tuple(sorted(planned for _, planned in taken_for)),
        devices=(name,),
        rack=labels.rack(claim.name.device, *sorted(hosts)),
        links=len(claim.ports),
        steps=tuple(Rename(seen.assumed[planned].device, planned, (port.guid,)) for port, planned in taken_for),
        tie=True,
    )


def unknown_adapters(seen: CablingObservation, labels: PlanLabels) -> Iterator[CablingExplanation]:
    """Yield one for each adapter that only its place identifies, and that has no duplicate name."""
    refused = {port for claim in seen.refused for port in claim.ports}
    for port, planned in seen.names.items():
        if planned in seen.assumed and port not in refused:
            called = seen.assumed[planned].device
            label = called if port.guid in called else f"{called} (GUID {port.guid})"
            yield CablingExplanation(
                kind=FaultKind.UNKNOWN_DEVICE,
                cause=f"{label} is not in the plan, and is in the place of {planned}",
                action=f"{labels.at(planned.device)}{planned}: give the adapter its name; or, if the part was "
                "replaced, enter its new GUID in the inventory; or, if another machine has it, exchange the cable",
                nodes=(planned.device,),
                ports=(planned,),
                devices=(called,),
                rack=labels.rack(planned.device),
                steps=(Rename(called, planned, (port.guid,)),),
                tie=True,
            )


def split_unknown(
    difference: CablingDifference, known: frozenset[str]
) -> tuple[dict[str, list[ObservedCable]], list[ObservedCable]]:
    """Return cables of unknown devices on ports that the plan leaves free, by device; and all other extra cables."""
    unknown: dict[str, list[ObservedCable]] = defaultdict(list)
    rest = []
    for cable in difference.extra:
        names = sorted(end.device for end in cable.ends if end.device not in known)
        if names and not cable.ends & difference.planned_ports:
            unknown[names[0]].append(cable)
        else:
            rest.append(cable)
    return unknown, rest


def explain_unknown_devices(unknown: Mapping[str, list[ObservedCable]], labels: PlanLabels) -> list[CablingExplanation]:
    """Return one for each unknown device, for any number of cables; devices with one node description are one."""
    alike: dict[str, list[str]] = defaultdict(list)
    for device in unknown:
        alike[_GUID.sub("", device)].append(device)
    return [
        _explain(same[0], unknown[same[0]], labels) if len(same) == 1 else _explain_alike(name, same, unknown, labels)
        for name, same in alike.items()
    ]


def _explain_alike(
    name: str, devices: list[str], unknown: Mapping[str, list[ObservedCable]], labels: PlanLabels
) -> CablingExplanation:
    cables = [cable for device in devices for cable in unknown[device]]
    strange = set(devices)
    ports = sorted({end for cable in cables for end in cable.ends})
    there: dict[str, list[PortName]] = defaultdict(list)
    for port in ports:
        if port.device not in strange:
            there[port.device].append(port)
    places = shortened([f"{labels.at(switch)}{switch} {labels.ports_in(at)}" for switch, at in there.items()], 8)
    return CablingExplanation(
        kind=FaultKind.UNKNOWN_DEVICE,
        cause=f"{len(devices)} devices with the name {name} are not in the plan: they are in {places}",
        action="set their node descriptions and add them to the plan, or unplug them",
        nodes=tuple(sorted(there.keys() & labels.plan.hosts)),
        ports=tuple(ports),
        devices=tuple(devices),
        rack=labels.rack(*there),
        links=len(cables),
        steps=tuple(TakeOut(*sorted(cable.ends)) for cable in cables),
        tie=True,
    )


def _explain(device: str, cables: list[ObservedCable], labels: PlanLabels) -> CablingExplanation:
    ports = tuple(sorted({end for cable in cables for end in cable.ends}))
    guids = sorted({labels.guids[port] for port in ports if port.device == device})
    hosts = tuple(sorted({port.device for port in ports if port.device in labels.plan.hosts}))
    return CablingExplanation(
        kind=FaultKind.UNKNOWN_DEVICE,
        cause=f"{device} (GUID {', '.join(guids)}) is not in the plan, and has {len(cables)} links",
        action=f"{device}: add it to the plan, or unplug it from {labels.beyond(device, ports)}",
        nodes=hosts,
        ports=ports,
        devices=(device,),
        rack=labels.rack(*hosts, *(port.device for port in ports)),
        links=len(cables),
        steps=tuple(TakeOut(*sorted(cable.ends)) for cable in cables),
        tie=True,
    )
