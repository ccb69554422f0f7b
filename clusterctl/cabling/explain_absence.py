"""Absent switches, islands and hosts, in words."""

from __future__ import annotations

from clusterctl.cabling.absence import AbsentGroup, unit_of
from clusterctl.cabling.explain import Explanation, Kind
from clusterctl.cabling.wording import Words, shortened
from clusterctl.fleet.wiring import PortName


def explain_group(group: AbsentGroup, words: Words) -> Explanation:
    plan = words.plan
    switches, hosts = group.switches(plan), group.hosts(plan)
    if not switches:
        return _host(group, hosts[0], words)
    boundary = tuple(sorted(_near_ends(group)))
    what = shortened(switches)
    links = f"{len(boundary)} planned links to the rest of the fabric" if boundary else "no planned link to the rest"
    ends = shortened([words.port(p) for p in boundary], 4)
    check = f"check power first, then the cables at {ends}" if boundary else "check power, then its uplinks"
    action = f"{words.at(switches[0])}{what}: {check}"
    if not hosts and len(switches) == 1:
        cause = f"{what} is not seen: none of its {links} is up, so it is off, dead or fully unplugged"
        return Explanation(Kind.ABSENT_DEVICE, cause, action, ports=boundary, rack=words.rack(*switches))
    cause = (
        f"{what} and {len(group.units) - len(switches)} adapters behind form an island that is not seen: "
        f"none of the {links} is up, so {what} is off, dead or without its uplinks"
    )
    return Explanation(Kind.ISLAND, cause, action, hosts, boundary, words.rack(*switches))


def _host(group: AbsentGroup, host: str, words: Words) -> Explanation:
    ports = tuple(sorted(end for cable in group.boundary for end in cable.ends))
    cause = f"{host} is not seen: all its {len(group.boundary)} planned links are down, so the host rather than a cable"
    action = f"{words.at(host)}{host}: check that it is powered and booted with its InfiniBand driver, then its cables"
    return Explanation(Kind.ABSENT_DEVICE, cause, action, (host,), ports, words.rack(host))


def _near_ends(group: AbsentGroup) -> set[PortName]:
    """The ends that are still there."""
    absent = set(group.units)
    return {end for cable in group.boundary for end in cable.ends if unit_of(end) not in absent}
