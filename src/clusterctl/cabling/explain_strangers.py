"""Devices that the plan does not know, on ports that it leaves free."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping

from clusterctl.cabling.actions import TakeOut
from clusterctl.cabling.diff import Difference
from clusterctl.cabling.explain import Explanation, Kind
from clusterctl.cabling.names import ObservedCable
from clusterctl.cabling.wording import Words, shortened


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
