"""Planned devices that the fabric does not show, in connected groups, and their explanations.

A switch that is off hides the adapters of its hosts: the cause is at the group's boundary, not at each adapter.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from itertools import chain

from clusterctl.cabling.actions import Restore
from clusterctl.cabling.difference import CablingDifference
from clusterctl.cabling.explain.explanation import CablingExplanation, FaultKind
from clusterctl.cabling.labels import PlanLabels, shortened
from clusterctl.fleet.fabric.wiring import PlannedCable, PortName, WiringPlan
from clusterctl.fleet.plain_numbers import is_number


@dataclass(frozen=True, slots=True)
class AbsentGroup:
    """Connected units that are not seen. `boundary`: planned cables to seen devices; `inner`: cables within the group.

    A unit is a switch (`port` empty), a board of a chassis, or one adapter of a host.
    """

    units: tuple[PortName, ...]
    boundary: tuple[PlannedCable, ...]
    inner: tuple[PlannedCable, ...]

    def switches(self, plan: WiringPlan) -> tuple[str, ...]:
        """Return the names of its switches and boards: `leaf-1`, `core-1 board L02`."""
        return tuple(sorted({f"{u.device} {u.port}".rstrip() for u in self.units if u.device not in plan.hosts}))

    def chassis(self, plan: WiringPlan) -> tuple[str, ...]:
        """Return the devices of its switches and boards."""
        return tuple(sorted({u.device for u in self.units if u.device not in plan.hosts}))

    def hosts(self, plan: WiringPlan) -> tuple[str, ...]:
        """Return the names of its hosts."""
        return tuple(sorted({u.device for u in self.units if u.device in plan.hosts}))


BOARD = "board "
"""How the unit of a board begins, before the board's name."""


def unit_of(port: PortName) -> PortName:
    """Return the unit that is present or absent as a whole: a switch, a board of a modular switch, or an adapter."""
    if is_number(port.port):
        return PortName(port.device, "")
    board = port.board
    return PortName(port.device, f"{BOARD}{board.partition('/')[0]}") if board else port


def absent_groups(plan: WiringPlan, difference: CablingDifference) -> tuple[AbsentGroup, ...]:
    """Return the groups that explain missing cables: switches with all behind them, and hosts without any adapter.

    A single absent adapter of a seen host is a missing cable, no group; so is a cable whose seen end has another one.
    """
    present = {unit_of(port) for port in difference.observed_ports}
    groups: list[AbsentGroup] = []
    by_host: dict[str, list[PlannedCable]] = defaultdict(list)
    for component in _connected(_absent(difference, present), present):
        group = _group(component, present)
        if group.switches(plan):
            groups.append(group)
        else:
            for cable in component:
                by_host[_host_of(cable, plan)].append(cable)
    seen = {unit.device for unit in present}
    hosts = (cables for host, cables in by_host.items() if host not in seen and len(cables) > 1)
    return (*_whole_chassis(groups, seen), *(_group(cables, present) for cables in hosts))


def _host_of(cable: PlannedCable, plan: WiringPlan) -> str:
    return next(end.device for end in cable.ends if end.device in plan.hosts)


def _absent(difference: CablingDifference, present: set[PortName]) -> list[PlannedCable]:
    return [c for c in difference.missing if set(map(unit_of, c.ends)) - present and not _taken(c, difference)]


def _whole_chassis(groups: list[AbsentGroup], seen: set[str]) -> list[AbsentGroup]:
    """Return the groups, with all boards of a chassis of which no board is seen as one unit of one group."""
    joined: list[AbsentGroup] = []
    for group in groups:
        units = {PortName(u.device, "") if _is_board(u) and u.device not in seen else u for u in group.units}
        alike = [other for other in joined if units & set(other.units)]
        joined = [other for other in joined if other not in alike]
        joined.append(_merged(units, group, alike))
    return joined


def _merged(units: set[PortName], group: AbsentGroup, alike: list[AbsentGroup]) -> AbsentGroup:
    members = (group, *alike)
    return AbsentGroup(
        tuple(sorted(units.union(*(other.units for other in alike)))),
        tuple(chain.from_iterable(member.boundary for member in members)),
        tuple(chain.from_iterable(member.inner for member in members)),
    )


def _is_board(unit: PortName) -> bool:
    return unit.port.startswith(BOARD)


def _taken(cable: PlannedCable, difference: CablingDifference) -> bool:
    return any(end in difference.observed_ports for end in cable.ends)


def _connected(cables: Iterable[PlannedCable], present: set[PortName]) -> list[list[PlannedCable]]:
    """Return the cables in groups that share absent units."""
    at: dict[PortName, list[PlannedCable]] = defaultdict(list)
    for cable in cables:
        for end in cable.ends:
            if unit_of(end) not in present:
                at[unit_of(end)].append(cable)
    done = set[PortName]()
    return [_reached(start, at, done) for start in at if start not in done]


def _reached(start: PortName, at: Mapping[PortName, list[PlannedCable]], done: set[PortName]) -> list[PlannedCable]:
    """Return the cables that lead from unit to unit, from `start` on; add the units to `done`."""
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
    return list(found.values())


def _group(cables: Iterable[PlannedCable], present: set[PortName]) -> AbsentGroup:
    cables = list(cables)
    boundary = tuple(c for c in cables if any(unit_of(end) in present for end in c.ends))
    inner = tuple(c for c in cables if all(unit_of(end) not in present for end in c.ends))
    units = {unit_of(end) for cable in cables for end in cable.ends} - present
    return AbsentGroup(tuple(sorted(units)), boundary, inner)


def explain_group(group: AbsentGroup, labels: PlanLabels) -> CablingExplanation:
    """Return one explanation for everything that the group's absence hides."""
    switches, hosts = group.switches(labels.plan), group.hosts(labels.plan)
    if not switches:
        return _host(group, hosts[0], labels)
    island = bool(hosts) or len(switches) > 1
    return CablingExplanation(
        kind=FaultKind.ISLAND if island else FaultKind.ABSENT_DEVICE,
        cause=_cause(group, switches, island),
        action=_action(group, switches, labels),
        nodes=hosts,
        ports=_near_ends(group),
        devices=switches,
        rack=labels.rack(*group.chassis(labels.plan)),
        links=len(group.boundary) + len(group.inner),
        steps=(_restore(group, labels.plan),),
    )


def _cause(group: AbsentGroup, switches: tuple[str, ...], island: bool) -> str:
    what = shortened(switches)
    count = len(group.boundary)
    links = f"{count} planned link{'s' if count != 1 else ''} to the rest of the fabric"
    if not island:
        return f"{what} is not seen: none of its {links} is up, so it is off, failed or fully unplugged"
    adapters = len(group.units) - len(switches)
    behind = f" and {adapters} adapters behind" if adapters else ""
    return (
        f"{what}{behind} form an island that is not seen: none of the {links} is up, "
        f"so {what} is off, failed or without its uplinks"
    )


def _action(group: AbsentGroup, switches: tuple[str, ...], labels: PlanLabels) -> str:
    """Return place and ports to check: the ports of one switch as a range, those of several at the far ends."""
    what = shortened(switches)
    chassis = group.chassis(labels.plan)
    check = f"{labels.at(chassis[0])}{what}: check power first"
    if not group.boundary:
        return f"{check}, then its uplinks"
    if len(switches) == 1:
        own = sorted(end for cable in group.boundary for end in cable.ends if end.device == chassis[0])
        if own:
            return f"{check}, then the cables in {labels.ports_in(own)}"
    ends = shortened([labels.port(port) for port in _near_ends(group)], 4)
    return f"{check}, then the cables at {ends}"


def cuts_off(explanation: CablingExplanation, group: AbsentGroup) -> bool:
    """Return whether the misplaced cables of `explanation` connect `group` with the rest."""
    units = set(group.units)
    return any(not units.isdisjoint((unit_of(port), PortName(port.device, ""))) for port in explanation.ports)


def with_consequence(explanation: CablingExplanation, group: AbsentGroup, labels: PlanLabels) -> CablingExplanation:
    """Return the explanation, extended by the group that it hides."""
    switches, hosts = group.switches(labels.plan), group.hosts(labels.plan)
    hidden = shortened(switches or hosts)
    return replace(
        explanation,
        cause=f"{explanation.cause}; so {hidden}, with {len(group.inner)} links behind, cannot be seen",
        nodes=tuple(sorted({*explanation.nodes, *hosts})),
        links=explanation.links + len(group.inner),
    )


def _host(group: AbsentGroup, host: str, labels: PlanLabels) -> CablingExplanation:
    cause = f"{host} is not seen: all its {len(group.boundary)} planned links are down, so the host rather than a cable"
    action = f"{labels.at(host)}{host}: check that it is powered and booted with its InfiniBand driver, then its cables"
    return CablingExplanation(
        kind=FaultKind.ABSENT_DEVICE,
        cause=cause,
        action=action,
        nodes=(host,),
        ports=tuple(sorted(end for cable in group.boundary for end in cable.ends)),
        devices=(host,),
        rack=labels.rack(host),
        links=len(group.boundary),
        steps=(_restore(group, labels.plan),),
    )


def _restore(group: AbsentGroup, plan: WiringPlan) -> Restore:
    devices = tuple(sorted({unit.device for unit in group.units}))
    return Restore(devices, tuple(cable.ends for cable in (*group.boundary, *group.inner)), group.chassis(plan))


def _near_ends(group: AbsentGroup) -> tuple[PortName, ...]:
    """Return the seen ends of the boundary."""
    absent = set(group.units)
    ends = {end for cable in group.boundary for end in cable.ends}
    return tuple(sorted(end for end in ends if absent.isdisjoint((unit_of(end), PortName(end.device, "")))))
