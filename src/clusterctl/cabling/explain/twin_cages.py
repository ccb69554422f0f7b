"""Two missing links of one twin-port cage: they share a transceiver, and maybe the cable, so they are one repair."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable
from collections.abc import Set as AbstractSet
from dataclasses import dataclass

from clusterctl.cabling.actions import Reseat
from clusterctl.cabling.explain.explanation import CablingExplanation, FaultKind
from clusterctl.cabling.labels import PlanLabels, listed
from clusterctl.fleet.fabric.wiring import PortName

_TWIN = re.compile(r"(.+)/[12]$")
_Cage = tuple[str, str]
"""A switch, and a cage label without the port."""


@dataclass(frozen=True, slots=True)
class _Pair:
    """Two missing links, and the cages that they share at one or both ends."""

    first: CablingExplanation
    second: CablingExplanation
    cages: tuple[_Cage, ...]


def join_cages(
    found: Iterable[CablingExplanation], present: AbstractSet[str], labels: PlanLabels
) -> list[CablingExplanation]:
    """Return the explanations, with both missing links of a cage joined; a link joins at most one other link.

    Pairs that share both ends come first. Links of a device that is not `present` stay apart: two hosts that are off
    share nothing.
    """
    found = list(found)
    done: set[int] = set()
    joined: dict[int, CablingExplanation] = {}
    for pair in sorted(_pairs(found, present, labels), key=lambda pair: -len(pair.cages)):
        if done.isdisjoint((id(pair.first), id(pair.second))):
            done |= {id(pair.first), id(pair.second)}
            joined[id(pair.first)] = _explain(pair, labels)
    return [joined.get(id(one), one) for one in found if id(one) in joined or id(one) not in done]


def _pairs(found: Iterable[CablingExplanation], present: AbstractSet[str], labels: PlanLabels) -> list[_Pair]:
    at: dict[_Cage, list[CablingExplanation]] = defaultdict(list)
    for one in found:
        if one.kind is FaultKind.MISSING_LINK and {port.device for port in one.ports} <= present:
            for cage in filter(None, (_cage(port, labels) for port in one.ports)):
                at[cage].append(one)
    shared: dict[tuple[int, int], _Pair] = {}
    for cage, here in at.items():
        if len(here) == 2:
            first, second = here
            known = shared.get((id(first), id(second)))
            cages = (*known.cages, cage) if known else (cage,)
            shared[id(first), id(second)] = _Pair(first, second, cages)
    return list(shared.values())


def _cage(port: PortName, labels: PlanLabels) -> _Cage | None:
    twin = _TWIN.match(labels.cage(port))
    return (port.device, twin[1]) if twin else None


def _explain(pair: _Pair, labels: PlanLabels) -> CablingExplanation:
    ports = sorted((*pair.first.ports, *pair.second.ports))
    cages = sorted(pair.cages, key=lambda cage: (not labels.at(cage[0]), cage))
    device, label = cages[0]
    far = [port for port in ports if _cage(port, labels) not in pair.cages]
    links = listed(" – ".join(map(str, sorted(one.ports))) for one in (pair.first, pair.second))
    return CablingExplanation(
        kind=FaultKind.MISSING_LINK,
        cause=f"both links of {device} cage {label} are down ({links}): their common part is missing or broken",
        action=_action(cages, far, labels),
        nodes=tuple(sorted({*pair.first.nodes, *pair.second.nodes})),
        ports=tuple(ports),
        rack=labels.rack(*(cage[0] for cage in cages)),
        links=2,
        steps=(Reseat(tuple(frozenset(one.ports) for one in (pair.first, pair.second))),),
        tie=bool(far),
    )


def _action(cages: list[_Cage], far: list[PortName], labels: PlanLabels) -> str:
    device, label = cages[0]
    place = f"{labels.at(device)}{device} cage {label}: reseat its transceiver"
    if not far:
        other, other_label = cages[1]
        return f"{place} and the cable to {other} cage {other_label}; replace them if the links stay down"
    ends = listed(f"{labels.at(port.device)}{labels.port(port)}" for port in far)
    return f"{place}, and replace it if both links stay down — or, alternatively, plug in both cables, from {ends}"
