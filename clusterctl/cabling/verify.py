"""A wiring plan against an observed fabric: the one call that the rest of the house makes."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from clusterctl.cabling.absence import AbsentGroup, absent_groups
from clusterctl.cabling.components import components
from clusterctl.cabling.diff import Difference, compare
from clusterctl.cabling.explain import Explanation, Kind
from clusterctl.cabling.explain_absence import explain_group
from clusterctl.cabling.explain_moves import explain_component, rails_of
from clusterctl.cabling.identity import vote
from clusterctl.cabling.names import Claim, Hosts, ObservedCable, name_ports, named_cables
from clusterctl.cabling.rates import slow_links
from clusterctl.cabling.wording import Words, words_for
from clusterctl.fleet.fabric import Fabric
from clusterctl.fleet.wiring import PortName, WiringPlan


@dataclass(frozen=True, slots=True)
class HostLinks:
    """Of one planned host: links planned, seen where they belong, and the slowest of those (Gb/s, None without any)."""

    planned: int
    right: int
    slowest_gbps: float | None


@dataclass(frozen=True, slots=True)
class Verification:
    """`planned`, `observed` and `right` count cables; `explanations` is empty only where every planned one is right,
    nothing else is there, and no link is slow.
    """

    planned: int
    observed: int
    right: int
    explanations: tuple[Explanation, ...]
    hosts: Mapping[str, HostLinks]
    host_gbps: float | None = None


def verify(
    plan: WiringPlan, fabric: Fabric, hosts: Hosts | None = None, *, host_gbps: float | None = None
) -> Verification:
    """`hosts` are GUIDs known from elsewhere; `host_gbps` the rate that a host's link must have.

    Without `host_gbps` a link is slow when most links of its class (host, or switch to switch) are faster.
    """
    names, refused = name_ports(fabric, plan, hosts or {})
    renamed = vote(named_cables(fabric, names), plan)
    names = {port: PortName(renamed.get(name.device, name.device), name.port) for port, name in names.items()}
    cables = named_cables(fabric, names)
    difference = compare(plan, cables)
    words = words_for(plan, fabric, names)
    groups = absent_groups(plan, difference)
    return Verification(
        planned=len(plan.cables),
        observed=len(cables),
        right=len(difference.right),
        explanations=(
            *_misnamed(renamed, words),
            *(_duplicate(claim, words) for claim in refused),
            *(explain_group(group, words) for group in groups),
            *_misplaced(difference, groups, words),
            *slow_links(difference.right, words, host_gbps),
        ),
        hosts=_host_links(plan, difference.right),
        host_gbps=host_gbps,
    )


def _misplaced(difference: Difference, groups: Iterable[AbsentGroup], words: Words) -> list[Explanation]:
    explained = {cable.ends for group in groups for cable in (*group.boundary, *group.inner)}
    foreign, rest = _foreign(difference, words.devices)
    missing = [cable for cable in difference.missing if cable.ends not in explained]
    rails = rails_of(words.plan)
    found = [_explain_foreign(device, cables, words) for device, cables in foreign.items()]
    return found + [explain_component(c, words, rails) for c in components(missing, rest)]


def _foreign(
    difference: Difference, known: frozenset[str]
) -> tuple[dict[str, list[ObservedCable]], list[ObservedCable]]:
    """Cables of devices that the plan does not know, where they are in nobody's way, by device; and all others."""
    foreign: dict[str, list[ObservedCable]] = defaultdict(list)
    rest = []
    for cable in difference.extra:
        strangers = sorted(end.device for end in cable.ends if end.device not in known)
        if strangers and not cable.ends & difference.planned_ports:
            foreign[strangers[0]].append(cable)
        else:
            rest.append(cable)
    return foreign, rest


def _explain_foreign(device: str, cables: list[ObservedCable], words: Words) -> Explanation:
    ports = tuple(sorted({end for cable in cables for end in cable.ends}))
    guids = sorted({words.guids[port] for port in ports if port.device == device})
    cause = f"{device} (GUID {', '.join(guids)}) is not in the plan, and has {len(cables)} links"
    action = f"{device}: add it to the plan, or unplug it from {', '.join(words.port(p) for p in ports[:4])}"
    nodes = tuple(sorted({port.device for port in ports if port.device in words.plan.hosts}))
    return Explanation(Kind.UNKNOWN_DEVICE, cause, action, nodes, ports, words.rack(*nodes))


def _misnamed(renamed: Mapping[str, str], words: Words) -> list[Explanation]:
    """One for each ring of exchanged devices, and one for each device under a wrong name."""
    done: set[str] = set()
    found = []
    for device in renamed:
        ring = [device]
        while (name := renamed.get(ring[-1])) is not None and name not in ring:
            ring.append(name)
        if done & set(ring):
            continue
        done.update(ring)
        closed = renamed.get(ring[-1]) == ring[0]
        places = ", ".join(f"{old} is cabled as {renamed[old]}" for old in ring if old in renamed)
        either = (
            "their names or their places are exchanged" if closed else "it carries a wrong name, or is another device"
        )
        first = renamed[device]
        found.append(
            Explanation(
                kind=Kind.MISNAMED,
                cause=f"{places}: {either}",
                action=f"{words.at(first)}{first}: compare serial numbers, then correct the names or move the devices; "
                "leave the cables",
                nodes=tuple(sorted(d for d in {*ring, first} if d in words.plan.hosts)),
                rack=words.rack(first),
            )
        )
    return found


def _duplicate(claim: Claim, words: Words) -> Explanation:
    guids = sorted(port.guid for port in claim.ports)
    return Explanation(
        kind=Kind.DUPLICATE_NAME,
        cause=f"{len(guids)} adapters call themselves {claim.name} (GUIDs {', '.join(guids)}): unknown which is which",
        action=f"{claim.name.device}: set the node description on each host, then read the fabric again",
        nodes=(claim.name.device,) if claim.name.device in words.plan.hosts else (),
        ports=(claim.name,),
        rack=words.rack(claim.name.device),
    )


def _host_links(plan: WiringPlan, right: Iterable[ObservedCable]) -> dict[str, HostLinks]:
    planned: dict[str, int] = dict.fromkeys(sorted(plan.hosts), 0)
    for cable in plan.cables:
        for end in cable.ends:
            if end.device in planned:
                planned[end.device] += 1
    rates: dict[str, list[float]] = defaultdict(list)
    for seen in right:
        for end in seen.ends:
            rates[end.device].append(seen.link.gbps)
    return {
        host: HostLinks(count, len(rates.get(host, ())), min(rates.get(host, ()), default=None))
        for host, count in planned.items()
    }
