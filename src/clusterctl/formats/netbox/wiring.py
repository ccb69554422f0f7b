"""NetBox's cables → the wiring plan of the fabric and the Ethernet plan, and the conflicts among the cables.

A cable with an end at a fabric switch belongs to the wiring plan, unless an end is a management port. A node's cable
to an Ethernet switch, or from its management port, belongs to the Ethernet plan, as does one between two Ethernet
switches. All others are left alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from clusterctl.fleet.fabric.wiring import PlannedCable, PortName, WiringPlan
from clusterctl.fleet.natural_order import natural_key
from clusterctl.fleet.node import Location, Mac
from clusterctl.formats.netbox.nodes import Ports
from clusterctl.formats.netbox.records import (
    INTERFACE,
    PANEL_PORTS,
    End,
    FarEnd,
    NetboxCable,
    NetboxConflict,
    NetboxConflictKind,
    NetboxDevice,
)
from clusterctl.formats.wiring.ports import is_switch_port, port_name

LAID = frozenset({"connected", "planned"})
"""Status of a cable that is there or shall be."""
BMC_PORT = "bmc"
"""A BMC's port in the Ethernet plan."""


class PlanKind(StrEnum):
    """The two plans of a site."""

    FABRIC = "fabric"
    ETHERNET = "ethernet"


@dataclass(frozen=True, slots=True, kw_only=True)
class CableChoice:
    """Which devices have the cables: nodes by id and name, switches by the slugs of their roles.

    `left_out` are devices with a node's role that are none: they have a conflict of their own, and their cables none.
    """

    nodes: Mapping[int, str]
    left_out: frozenset[int]
    devices: Mapping[int, NetboxDevice]
    fabric_roles: frozenset[str]
    ethernet_roles: frozenset[str]
    ports: Ports

    def is_fabric_switch(self, end: End) -> bool:
        return self._role(end) in self.fabric_roles

    def is_ethernet_switch(self, end: End) -> bool:
        return self._role(end) in self.ethernet_roles

    def is_management(self, end: End) -> bool:
        port = self.ports.interfaces.get(end.id) if end.kind == INTERFACE else None
        return port is not None and port.mgmt_only

    def _role(self, end: End) -> str:
        device = self.devices.get(end.device)
        return device.role if device else ""

    def plan_of(self, ends: Sequence[End]) -> PlanKind | None:
        """Return the plan that a cable belongs to; None where it belongs to none."""
        known = [end for end in ends if end.device in self.nodes or self._role(end)]
        management = any(map(self.is_management, ends))
        if not management and any(map(self.is_fabric_switch, known)):
            return PlanKind.FABRIC
        switches = list(map(self.is_ethernet_switch, known))
        if any(end.device in self.nodes for end in ends):
            ethernet = management or any(switches)
        else:
            ethernet = len(switches) > 1 and all(switches)
        return PlanKind.ETHERNET if ethernet else None


@dataclass(slots=True)
class _Plans:
    """The cables by plan, the conflicts, and the first cable at each port."""

    choice: CableChoice
    cables: dict[PlanKind, list[PlannedCable]] = field(default_factory=lambda: {kind: [] for kind in PlanKind})
    conflicts: list[NetboxConflict] = field(default_factory=list)
    taken: dict[PortName, NetboxCable] = field(default_factory=dict)
    left_out: int = 0

    def refuse(self, cable: NetboxCable, kind: NetboxConflictKind, text: str, *, left_out: bool = True) -> None:
        ends = _ends_text(cable, self.choice)
        subject = f"{cable.title} ({ends})" if ends else cable.title
        self.conflicts.append(NetboxConflict(subject=subject, kind=kind, text=text, path=cable.path, left_out=left_out))


def _ends_text(cable: NetboxCable, choice: CableChoice) -> str:
    """Return the ends of a cable in a few words."""
    names = []
    for end in (*cable.a[:2], *cable.b[:2]):
        device = choice.devices.get(end.device)
        names.append(f"{choice.nodes.get(end.device) or (device.label if device else 'unknown')} {end.name}".strip())
    return ", ".join(names)


def panel_interfaces(cables: Iterable[NetboxCable]) -> tuple[int, ...]:
    """Return the interfaces whose cable ends in a patch panel: their far ends have to be asked for."""
    found = set()
    for cable in cables:
        ends = (*cable.a, *cable.b)
        if any(end.kind in PANEL_PORTS for end in ends):
            found |= {end.id for end in ends if end.kind == INTERFACE}
    return tuple(sorted(found))


@dataclass(frozen=True, slots=True, kw_only=True)
class SitePlans:
    """The plans, without any port that has two cables, and what of the cables is not in them.

    `left_out`: how many cables end at devices that are left out.
    """

    fabric: WiringPlan
    ethernet: WiringPlan
    conflicts: Sequence[NetboxConflict]
    left_out: int


def plans(cables: Iterable[NetboxCable], far_ends: Mapping[int, FarEnd], choice: CableChoice) -> SitePlans:
    """Return the plans. `far_ends`: of the interfaces of `panel_interfaces`, by id."""
    found = _Plans(choice)
    for cable in sorted(cables, key=lambda one: one.id):
        _take(found, cable, far_ends)
    return SitePlans(
        fabric=_plan(PlanKind.FABRIC, found, choice),
        ethernet=_plan(PlanKind.ETHERNET, found, choice),
        conflicts=found.conflicts,
        left_out=found.left_out,
    )


def _take(found: _Plans, cable: NetboxCable, far_ends: Mapping[int, FarEnd]) -> None:
    ends = (*cable.a, *cable.b)
    through_panel = any(end.kind in PANEL_PORTS for end in ends)
    if through_panel:
        _take_path(found, cable, far_ends)
        return
    plan = found.choice.plan_of(ends)
    if plan is None:
        return
    if cable.status not in LAID:
        found.refuse(cable, NetboxConflictKind.CABLE, f"has the status {cable.status or 'unknown'}")
    elif len(cable.a) != 1 or len(cable.b) != 1:
        text = f"is a breakout cable with {len(cable.a)} and {len(cable.b)} ends: a plan has one cable at a port"
        found.refuse(cable, NetboxConflictKind.BREAKOUT, text)
    elif any(end.device in found.choice.left_out for end in ends):
        found.left_out += 1
    else:
        _add(found, cable, plan, (cable.a[0], cable.b[0]))


def _through_a_panel(path: FarEnd | None) -> str:
    reach = "" if path and path.reachable else ", and a cable on the path is not connected"
    return f"goes through a patch panel; the plan has the whole path as one cable{reach}"


def _take_path(found: _Plans, cable: NetboxCable, far_ends: Mapping[int, FarEnd]) -> None:
    """Take the path of a node or switch through panels as one cable: from that of its interfaces with the lower id."""
    for end in (*cable.a, *cable.b):
        if end.kind != INTERFACE:
            continue
        path = far_ends.get(end.id)
        beyond = path.ends if path else ()
        plan = found.choice.plan_of((end, *beyond))
        if plan is None and end.device not in found.choice.nodes:
            continue
        if len(beyond) != 1 or beyond[0].kind != INTERFACE:
            found.refuse(
                cable, NetboxConflictKind.PANEL, "ends in a patch panel: the path leads to no single port behind it"
            )
        elif beyond[0].id > end.id or beyond[0].id not in far_ends:
            found.refuse(cable, NetboxConflictKind.PANEL, _through_a_panel(path), left_out=False)
            if plan is not None:
                _add(found, cable, plan, (end, beyond[0]))


def _add(found: _Plans, cable: NetboxCable, plan: PlanKind, ends: tuple[End, End]) -> None:
    """Add a cable to its plan, the switch first; refuse one with an unknown device or port, or at a taken port."""
    choice = found.choice
    ports = []
    for end in ends:
        port = _port(end, plan, choice)
        if port is None:
            found.refuse(cable, NetboxConflictKind.PORT, _why_no_port(end, choice))
            return
        ports.append(port)
    for port in ports:
        if port in found.taken:
            found.refuse(cable, NetboxConflictKind.DUPLICATE, f"{port} already has {found.taken[port].title}")
            return
    first, second = _in_order(ports, ends, choice)
    found.taken |= {first: cable, second: cable}
    found.cables[plan].append(PlannedCable(source=first, destination=second, length_m=cable.length_m, kind=cable.kind))


def _port(end: End, plan: PlanKind, choice: CableChoice) -> PortName | None:
    """Return the port by the plan's names; None where device or port have none."""
    node = choice.nodes.get(end.device)
    if node is not None:
        return _node_port(node, end, plan, choice)
    device = choice.devices.get(end.device)
    if device is None or not device.name or device.role not in choice.fabric_roles | choice.ethernet_roles:
        return None
    if plan is PlanKind.ETHERNET:
        return PortName(device.name, end.name) if end.name else None
    return PortName(device.name, port_name(end.name)) if is_switch_port(end.name) else None


def _node_port(node: str, end: End, plan: PlanKind, choice: CableChoice) -> PortName | None:
    name = BMC_PORT if plan is PlanKind.ETHERNET and choice.is_management(end) else end.name
    return PortName(node, name) if name and not (plan is PlanKind.FABRIC and is_switch_port(name)) else None


def _why_no_port(end: End, choice: CableChoice) -> str:
    device = choice.devices.get(end.device)
    if device is None:
        return "ends at a device of another site, or at none"
    known = end.device in choice.nodes or device.role in choice.fabric_roles | choice.ethernet_roles
    if not known:
        return f"ends at {device.label}, which is neither a node of the sheet nor a switch (role {device.role})"
    return f"{end.name or 'a port without a name'} is no port that the plan can name"


def _in_order(ports: Sequence[PortName], ends: tuple[End, End], choice: CableChoice) -> tuple[PortName, PortName]:
    """Return the switch's end first; of two switches, the first by name."""
    (one, other), (end, far) = ports, ends
    if (end.device in choice.nodes) != (far.device in choice.nodes):
        return (other, one) if end.device in choice.nodes else (one, other)
    first, second = sorted((one, other), key=_order)
    return first, second


_Key = tuple[tuple[int, str], ...]


def _order(port: PortName) -> tuple[_Key, _Key]:
    return natural_key(port.device), natural_key(port.port)


def _plan(kind: PlanKind, found: _Plans, choice: CableChoice) -> WiringPlan:
    cables = sorted(found.cables[kind], key=lambda cable: (_order(cable.source), _order(cable.destination)))
    devices = {end.device for cable in cables for end in cable.ends}
    hosts = frozenset(choice.nodes.values()) & devices
    return WiringPlan(tuple(cables), hosts, _places(devices, choice), _macs(cables, choice))


def _places(names: set[str], choice: CableChoice) -> Mapping[str, Location]:
    found = {}
    for device in choice.devices.values():
        name = choice.nodes.get(device.id, device.name)
        if name in names and device.rack:
            whole = device.unit is not None and device.unit.is_integer() and 1 <= device.unit <= 99
            found[name] = Location(device.rack, int(device.unit) if whole and device.unit is not None else None)
    return found


def _macs(cables: Iterable[PlannedCable], choice: CableChoice) -> Mapping[PortName, Mac]:
    """Return the MACs of the nodes' ports."""
    wanted = {end for cable in cables for end in cable.ends}
    found = {}
    for port in choice.ports.interfaces.values():
        node = choice.nodes.get(port.device)
        if node is not None and port.mac is not None:
            name = PortName(node, BMC_PORT if port.mgmt_only else port.name)
            if name in wanted:
                found[name] = port.mac
    return found
