"""Planned devices of which the fabric shows nothing, collapsed into connected groups.

One switch that is off takes its hosts' adapters with it: the cause is at the group's boundary, not at each adapter.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

from clusterctl.cabling.diff import Difference
from clusterctl.fleet.wiring import PlannedCable, PortName, WiringPlan


@dataclass(frozen=True, slots=True)
class AbsentGroup:
    """Units that are not seen and hang together. `boundary` are the planned cables to devices that are seen; `inner`
    those within. A unit is a switch (`port` empty) or one adapter of a host.
    """

    units: tuple[PortName, ...]
    boundary: tuple[PlannedCable, ...]
    inner: tuple[PlannedCable, ...]

    def switches(self, plan: WiringPlan) -> tuple[str, ...]:
        return tuple(sorted({u.device for u in self.units if u.device not in plan.hosts}))

    def hosts(self, plan: WiringPlan) -> tuple[str, ...]:
        return tuple(sorted({u.device for u in self.units if u.device in plan.hosts}))


def unit_of(port: PortName) -> PortName:
    """The thing that is present or absent as a whole: a numbered port's device, or the adapter itself."""
    return PortName(port.device, "") if port.port.isdigit() else port


def absent_groups(plan: WiringPlan, difference: Difference) -> tuple[AbsentGroup, ...]:
    """Groups that explain missing cables by themselves: switches with what hangs on them, and hosts that show none of
    their adapters. A single adapter of a host that shows others is left alone: its cable is simply missing. So is a
    cable whose seen end now holds another one.
    """
    present = {unit_of(port) for port in difference.observed_ports}
    cables = [c for c in difference.missing if {unit_of(e) for e in c.ends} - present and not _taken(c, difference)]
    groups = []
    by_host: dict[str, list[PlannedCable]] = defaultdict(list)
    for component in _connected(cables, present):
        group = _group(component, present)
        if group.switches(plan):
            groups.append(group)
        else:
            for cable in component:
                by_host[next(e.device for e in cable.ends if e.device in plan.hosts)].append(cable)
    seen_hosts = {unit.device for unit in present}
    for host, missing in by_host.items():
        if host not in seen_hosts and len(missing) > 1:
            groups.append(_group(missing, present))
    return tuple(groups)


def _taken(cable: PlannedCable, difference: Difference) -> bool:
    return any(end in difference.observed_ports for end in cable.ends)


def _connected(cables: Iterable[PlannedCable], present: set[PortName]) -> list[list[PlannedCable]]:
    """The cables in groups that share absent units."""
    at: dict[PortName, list[PlannedCable]] = defaultdict(list)
    for cable in cables:
        for end in cable.ends:
            if unit_of(end) not in present:
                at[unit_of(end)].append(cable)
    components, done = [], set[PortName]()
    for start in at:
        if start in done:
            continue
        found: dict[frozenset[PortName], PlannedCable] = {}
        todo = [start]
        while todo:
            unit = todo.pop()
            if unit in done:
                continue
            done.add(unit)
            for cable in at[unit]:
                found[cable.ends] = cable
                todo.extend(u for u in map(unit_of, cable.ends) if u in at)
        components.append(list(found.values()))
    return components


def _group(cables: Iterable[PlannedCable], present: set[PortName]) -> AbsentGroup:
    cables = list(cables)
    boundary = tuple(c for c in cables if any(unit_of(end) in present for end in c.ends))
    inner = tuple(c for c in cables if all(unit_of(end) not in present for end in c.ends))
    units = {unit_of(end) for cable in cables for end in cable.ends} - present
    return AbsentGroup(tuple(sorted(units)), boundary, inner)
