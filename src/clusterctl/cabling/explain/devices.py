"""Devices under a wrong name, under each other's, under one that several bear, or under none of use: in words."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping

from clusterctl.cabling.actions import Rename, TakeOut
from clusterctl.cabling.difference import Difference
from clusterctl.cabling.explain.explanation import Explanation, Kind
from clusterctl.cabling.explain.observation import Sighting
from clusterctl.cabling.labels import Words, shortened
from clusterctl.cabling.names import Claim, ObservedCable
from clusterctl.fleet.fabric.wiring import PortName


def misnamed(seen: Sighting, words: Words) -> Iterator[Explanation]:
    """One for each ring of exchanged devices, and one for each chain of devices that bear another's name."""
    renamed = seen.renamed
    done: set[str] = set()
    heads = [device for device in renamed if device not in renamed.values()]
    for start in (*heads, *renamed):
        if start in done:
            continue
        chain = [start]
        while (name := renamed[chain[-1]]) in renamed and name != start:
            chain.append(name)
        done.update(chain)
        yield _misnamed(chain, renamed, seen, words)


def _misnamed(chain: list[str], renamed: Mapping[str, str], seen: Sighting, words: Words) -> Explanation:
    ring = renamed[chain[-1]] == chain[0]
    first = renamed[chain[0]]
    involved = tuple(dict.fromkeys((*chain, *(renamed[device] for device in chain))))
    places = ", ".join(f"{device} is cabled as {renamed[device]}" for device in chain)
    either = "their names or their places are exchanged" if ring else "it carries a wrong name, or is another device"
    cables = [cable for cable in seen.difference.right if any(end.device in involved for end in cable.ends)]
    return Explanation(
        kind=Kind.EXCHANGED if ring else Kind.MISNAMED,
        cause=f"{places}: {either}",
        action=f"{words.at(first)}{first}: compare serial numbers, then correct the names or move the devices; "
        "leave the cables",
        nodes=tuple(sorted(device for device in involved if device in words.plan.hosts)),
        devices=involved,
        rack=words.rack(*involved),
        links=len(cables),
        steps=tuple(Rename(device, PortName(renamed[device], ""), seen.guids[device]) for device in chain),
        tie=True,
    )


def duplicates(seen: Sighting, words: Words) -> Iterator[Explanation]:
    """One for each name that several bear, where it is unknown which is which."""
    return (_duplicate(claim, seen, words) for claim in seen.refused)


def _duplicate(claim: Claim, seen: Sighting, words: Words) -> Explanation:
    name = str(claim.name) if claim.name.port else claim.name.device
    guids = sorted({port.guid for port in claim.ports})
    taken_for = [(port, seen.names[port]) for port in claim.ports if seen.names[port] in seen.assumed]
    cause = f"{len(guids)} devices call themselves {name} (GUIDs {shortened(guids, 4)}): unknown which is which"
    where = words.at(claim.name.device)
    hosts = {planned.device for _, planned in taken_for} | ({claim.name.device} & words.plan.hosts)
    if taken_for:
        cause += f"; {len(taken_for)} of them are where adapters of {shortened(sorted(hosts), 4)} are planned"
    return Explanation(
        kind=Kind.DUPLICATE_NAME,
        cause=cause,
        action=f"{where}{name}: set the node description on each host, or give their GUIDs; then read the fabric again",
        nodes=tuple(sorted(hosts)),
        ports=tuple(sorted(planned for _, planned in taken_for)),
        devices=(name,),
        rack=words.rack(claim.name.device, *sorted(hosts)),
        links=len(claim.ports),
        steps=tuple(Rename(seen.assumed[planned].device, planned, (port.guid,)) for port, planned in taken_for),
        tie=True,
    )


def unknown_adapters(seen: Sighting, words: Words) -> Iterator[Explanation]:
    """One for each adapter that is known by its place only, and is not one of several under one name."""
    refused = {port for claim in seen.refused for port in claim.ports}
    for port, planned in seen.names.items():
        if planned in seen.assumed and port not in refused:
            called = seen.assumed[planned].device
            label = called if port.guid in called else f"{called} (GUID {port.guid})"
            yield Explanation(
                kind=Kind.UNKNOWN_DEVICE,
                cause=f"{label} is not in the plan, and is where {planned} is planned",
                action=f"{words.at(planned.device)}{planned}: give the adapter its name; or, if the part was replaced, "
                "tell the inventory its new GUID; or, if it is another machine's, exchange the cable",
                nodes=(planned.device,),
                ports=(planned,),
                devices=(called,),
                rack=words.rack(planned.device),
                steps=(Rename(called, planned, (port.guid,)),),
                tie=True,
            )


def strangers_apart(
    difference: Difference, known: frozenset[str]
) -> tuple[dict[str, list[ObservedCable]], list[ObservedCable]]:
    """Cables of devices that the plan does not know, where they are in nobody's way, by device; and all others."""
    strangers: dict[str, list[ObservedCable]] = defaultdict(list)
    rest = []
    for cable in difference.extra:
        names = sorted(end.device for end in cable.ends if end.device not in known)
        if names and not cable.ends & difference.planned_ports:
            strangers[names[0]].append(cable)
        else:
            rest.append(cable)
    return strangers, rest


def explain_strangers(strangers: Mapping[str, list[ObservedCable]], words: Words) -> list[Explanation]:
    """One for each stranger, however many cables it has."""
    return [_explain(device, cables, words) for device, cables in strangers.items()]


def _explain(device: str, cables: list[ObservedCable], words: Words) -> Explanation:
    ports = tuple(sorted({end for cable in cables for end in cable.ends}))
    guids = sorted({words.guids[port] for port in ports if port.device == device})
    hosts = tuple(sorted({port.device for port in ports if port.device in words.plan.hosts}))
    there = [words.port(port) for port in ports if port.device != device] or [words.port(port) for port in ports]
    return Explanation(
        kind=Kind.UNKNOWN_DEVICE,
        cause=f"{device} (GUID {', '.join(guids)}) is not in the plan, and has {len(cables)} links",
        action=f"{device}: add it to the plan, or unplug it from {shortened(there, 4)}",
        nodes=hosts,
        ports=ports,
        devices=(device,),
        rack=words.rack(*hosts, *(port.device for port in ports)),
        links=len(cables),
        steps=tuple(TakeOut(*sorted(cable.ends)) for cable in cables),
        tie=True,
    )
