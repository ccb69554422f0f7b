"""Absent switches, islands and hosts, in words."""

from __future__ import annotations

from dataclasses import replace

from clusterctl.cabling.absence import AbsentGroup, unit_of
from clusterctl.cabling.actions import Restore
from clusterctl.cabling.explain import Explanation, Kind
from clusterctl.cabling.wording import Words, shortened
from clusterctl.fleet.wiring import PortName


def explain_group(group: AbsentGroup, words: Words) -> Explanation:
    """One cause for all that the group's absence hides."""
    switches, hosts = group.switches(words.plan), group.hosts(words.plan)
    if not switches:
        return _host(group, hosts[0], words)
    island = bool(hosts) or len(switches) > 1
    return Explanation(
        kind=Kind.ISLAND if island else Kind.ABSENT_DEVICE,
        cause=_cause(group, switches, island),
        action=_action(group, switches, words),
        nodes=hosts,
        ports=_near_ends(group),
        devices=switches,
        rack=words.rack(*switches),
        links=len(group.boundary) + len(group.inner),
        steps=(_restore(group),),
    )


def _cause(group: AbsentGroup, switches: tuple[str, ...], island: bool) -> str:
    what = shortened(switches)
    count = len(group.boundary)
    links = f"{count} planned link{'s' if count != 1 else ''} to the rest of the fabric"
    if not island:
        return f"{what} is not seen: none of its {links} is up, so it is off, dead or fully unplugged"
    adapters = len(group.units) - len(switches)
    behind = f" and {adapters} adapters behind" if adapters else ""
    return (
        f"{what}{behind} form an island that is not seen: none of the {links} is up, "
        f"so {what} is off, dead or without its uplinks"
    )


def _action(group: AbsentGroup, switches: tuple[str, ...], words: Words) -> str:
    """Where to stand, and the ports to look at there; one device's as a range, several ones' at the far ends."""
    what = shortened(switches)
    check = f"{words.at(switches[0])}{what}: check power first"
    if not group.boundary:
        return f"{check}, then its uplinks"
    if len(switches) == 1:
        own = sorted(end for cable in group.boundary for end in cable.ends if end.device == switches[0])
        if own:
            return f"{check}, then the cables in {words.ports_in(own)}"
    ends = shortened([words.port(port) for port in _near_ends(group)], 4)
    return f"{check}, then the cables at {ends}"


def cuts_off(explanation: Explanation, group: AbsentGroup) -> bool:
    """Whether the misplaced cables of `explanation` are what ties `group` to the rest."""
    units = set(group.units)
    return any(unit_of(port) in units for port in explanation.ports)


def with_consequence(explanation: Explanation, group: AbsentGroup, words: Words) -> Explanation:
    """The same, said to hide the group as well."""
    switches, hosts = group.switches(words.plan), group.hosts(words.plan)
    hidden = shortened(switches or hosts)
    return replace(
        explanation,
        cause=f"{explanation.cause}; so {hidden}, with {len(group.inner)} links behind, cannot be seen",
        nodes=tuple(sorted({*explanation.nodes, *hosts})),
        links=explanation.links + len(group.inner),
    )


def _host(group: AbsentGroup, host: str, words: Words) -> Explanation:
    cause = f"{host} is not seen: all its {len(group.boundary)} planned links are down, so the host rather than a cable"
    action = f"{words.at(host)}{host}: check that it is powered and booted with its InfiniBand driver, then its cables"
    return Explanation(
        kind=Kind.ABSENT_DEVICE,
        cause=cause,
        action=action,
        nodes=(host,),
        ports=tuple(sorted(end for cable in group.boundary for end in cable.ends)),
        devices=(host,),
        rack=words.rack(host),
        links=len(group.boundary),
        steps=(_restore(group),),
    )


def _restore(group: AbsentGroup) -> Restore:
    devices = tuple(sorted({unit.device for unit in group.units}))
    return Restore(devices, tuple(cable.ends for cable in (*group.boundary, *group.inner)))


def _near_ends(group: AbsentGroup) -> tuple[PortName, ...]:
    """The ends that are still there."""
    absent = set(group.units)
    return tuple(sorted({end for cable in group.boundary for end in cable.ends if unit_of(end) not in absent}))
