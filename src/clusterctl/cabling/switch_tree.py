"""The tree of switch groups that follows from a wiring plan: units on the same leaves, pods, the whole fabric.

A scheduler wants each host in one group of the lowest tier. A rail-optimised host is cabled to one leaf of each rail:
the hosts that share leaves are one *unit*, whatever the number of rails.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from clusterctl.cabling.names import short
from clusterctl.fleet.fabric.switch_tree import SwitchGroup
from clusterctl.fleet.fabric.wiring import WiringPlan
from clusterctl.fleet.natural_order import natural_key

UNCABLED = 1 << 30
"""The tier of a switch that no host reaches."""


@dataclass(frozen=True, slots=True)
class _Component:
    """Hosts and switches that are joined by the cables up to one tier."""

    hosts: tuple[str, ...]
    switches: tuple[str, ...]


def switch_tree(plan: WiringPlan) -> tuple[SwitchGroup, ...]:
    """Return the groups, from the lowest tier up; each host is in one group of tier 0, by its short name.

    A tier that joins nothing is left out. Groups of the highest tier that are not connected stay apart.
    """
    tiers = _tiers(plan)
    depth = max((tier for tier in tiers.values() if tier != UNCABLED), default=0)
    levels: list[list[_Component]] = []
    for tier in range(depth + 2):  # one more: cables between switches of the highest tier
        found = _components(plan, tiers, tier)
        if not levels or len(found) < len(levels[-1]):
            levels.append(found)
    groups: list[SwitchGroup] = []
    for level, found in enumerate(levels):
        groups += _groups(found, level, levels)
    return tuple(groups)


def _groups(found: Sequence[_Component], level: int, levels: Sequence[Sequence[_Component]]) -> Iterator[SwitchGroup]:
    for number, one in enumerate(found):
        children = _inside(one, levels[level - 1], level - 1, levels) if level else ()
        yield SwitchGroup(
            name=_name(level, number, levels),
            tier=level,
            switches=one.switches,
            hosts=() if level else one.hosts,
            groups=children,
        )


def _inside(
    one: _Component, below: Sequence[_Component], level: int, levels: Sequence[Sequence[_Component]]
) -> tuple[str, ...]:
    """Return the names of the groups below whose hosts `one` holds."""
    hosts = frozenset(one.hosts)
    return tuple(_name(level, number, levels) for number, group in enumerate(below) if group.hosts[0] in hosts)


def _name(level: int, number: int, levels: Sequence[Sequence[_Component]]) -> str:
    """Return the name of a group; no device of the plan gives its own, since Slurm takes fewer characters."""
    if level == 0:
        return f"unit{number + 1}"
    if level == len(levels) - 1 and len(levels[level]) == 1:
        return "fabric"
    return f"pod{number + 1}" if level == 1 else f"tier{level}-{number + 1}"


def _tiers(plan: WiringPlan) -> Mapping[str, int]:
    """Return for each switch its distance from the nearest host: 0 for a leaf."""
    near = _neighbours(plan)
    tiers = {name: UNCABLED for name in near if name not in plan.hosts}
    edge = {name for host in plan.hosts for name in near[host] if name in tiers}
    tier = 0
    while edge:
        tiers.update(dict.fromkeys(edge, tier))
        edge = {other for name in edge for other in near[name] if tiers.get(other) == UNCABLED}
        tier += 1
    return tiers


def _components(plan: WiringPlan, tiers: Mapping[str, int], tier: int) -> list[_Component]:
    """Return what the cables up to `tier` join, by its first host. Tier 0 has the cables of hosts alone."""
    joined = _joined(plan, tiers, tier)
    members: dict[str, list[str]] = defaultdict(list)
    for name in {end.device for cable in plan.cables for end in (cable.source, cable.destination)}:
        members[joined.root(name)].append(name)
    found = []
    for names in members.values():
        hosts = tuple(sorted((short(name) for name in names if name in plan.hosts), key=natural_key))
        switches = tuple(sorted((name for name in names if tiers.get(name) == tier), key=natural_key))
        if hosts:
            found.append(_Component(hosts, switches))
    return sorted(found, key=lambda one: natural_key(one.hosts[0]))


def _neighbours(plan: WiringPlan) -> dict[str, set[str]]:
    near: dict[str, set[str]] = defaultdict(set)
    for cable in plan.cables:
        source, destination = cable.source.device, cable.destination.device
        near[source].add(destination)
        near[destination].add(source)
    return near


def _joined(plan: WiringPlan, tiers: Mapping[str, int], tier: int) -> _Sets:
    joined = _Sets()
    for cable in plan.cables:
        ends = (cable.source.device, cable.destination.device)
        heights = [tiers.get(end, -1) for end in ends]
        if max(heights) <= tier and (tier > 0 or -1 in heights):
            joined.join(*ends)
    return joined


class _Sets:
    """Disjoint sets of names."""

    def __init__(self) -> None:
        self._parents: dict[str, str] = {}

    def root(self, name: str) -> str:
        """Return the representative of the set that `name` is in."""
        top = name
        while (parent := self._parents.get(top, top)) != top:
            top = parent
        while (parent := self._parents.get(name, name)) != top:
            self._parents[name], name = top, parent
        return top

    def join(self, one: str, other: str) -> None:
        """Make the sets of two names one set."""
        self._parents[self.root(one)] = self.root(other)
