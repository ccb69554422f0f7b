"""A data centre to play in: devices that have power and a name, cables with two plugs, and a technician's moves.

It shares nothing with the code under test but the types: what is plugged in is known here by GUID and port number.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from clusterctl.fleet.fabric.topology import Device, DeviceKind, Fabric, Link, PortId
from clusterctl.fleet.fabric.wiring import PlannedCable, PortName, WiringPlan
from clusterctl.fleet.node import Guid

RADIX = 129


@dataclass(frozen=True)
class Shape:
    """`groups` of hosts, each with one leaf a rail; `trunks` parallel cables of a leaf to each spine, of a spine to each
    core (`cores` may be 0).
    """

    groups: int
    rails: int
    hosts: int
    spines: int
    cores: int
    trunks: int

    def plan(self) -> WiringPlan:
        pairs = [*self._host_cables(), *self._trunks()]
        cables = tuple(PlannedCable(a, b, line=n) for n, (a, b) in enumerate(pairs, start=2))
        return WiringPlan(cables, frozenset(b.device for _, b in self._host_cables()))

    def _host_cables(self) -> list[tuple[PortName, PortName]]:
        return [
            (_switch_port(f"leaf-{group}-{rail}", host + 1), PortName(f"node{group}{host:02d}", f"mlx5_{rail}"))
            for group in range(self.groups)
            for rail in range(self.rails)
            for host in range(self.hosts)
        ]

    def _trunks(self) -> list[tuple[PortName, PortName]]:
        leaves = [f"leaf-{group}-{rail}" for group in range(self.groups) for rail in range(self.rails)]
        spines = [f"spine-{n}" for n in range(self.spines)]
        cores = [f"core-{n}" for n in range(self.cores)]
        return [
            (_switch_port(low, 81 + j * self.trunks + t), _switch_port(high, 1 + i * self.trunks + t))
            for lower, upper in ((leaves, spines), (spines, cores))
            for i, low in enumerate(lower)
            for j, high in enumerate(upper)
            for t in range(self.trunks)
        ]


def _switch_port(device: str, number: int) -> PortName:
    return PortName(device, str(number))


def unit_of(port: PortName) -> str:
    """What bears a name of its own: a switch, or one adapter of a host."""
    return port.device if port.port.isdigit() else f"{port.device} {port.port}"


@dataclass
class World:
    """`cables` by the ports that their plugs are in; `names` what a device calls itself; `off` has no power."""

    plan: WiringPlan
    guids: dict[str, Guid] = field(init=False)
    names: dict[Guid, str] = field(init=False)
    cables: list[set[PortId]] = field(init=False)
    off: set[Guid] = field(default_factory=set)

    def __post_init__(self) -> None:
        units = sorted({unit_of(end) for cable in self.plan.cables for end in cable.ends})
        self.guids = {unit: Guid(f"{number:016x}") for number, unit in enumerate(units, start=0x1000)}
        self.names = {guid: unit for unit, guid in self.guids.items()}
        self.cables = [{self._planned(end) for end in cable.ends} for cable in self.plan.cables]

    def _planned(self, port: PortName) -> PortId:
        return PortId(self.guids[unit_of(port)], int(port.port) if port.port.isdigit() else 1)

    def is_switch(self, guid: Guid) -> bool:
        return guid in self.switches()

    def host_of(self, guid: Guid) -> str:
        """The name on the host's label, whatever its adapters call themselves."""
        return next(unit for unit, known in self.guids.items() if known == guid).split()[0]

    def adapters(self, hosts: set[str]) -> dict[Guid, PortName]:
        """The adapters of these hosts, as each host itself reads their GUIDs."""
        pairs = ((guid, unit.split()) for unit, guid in self.guids.items() if " " in unit)
        return {guid: PortName(host, adapter) for guid, (host, adapter) in pairs if host in hosts}

    def label(self, names: Mapping[Guid, str]) -> None:
        """Take devices for what they are called now; the box that had the label so far is the other one, then."""
        for guid, name in names.items():
            other = self.guids[name]
            mine = next(unit for unit, known in self.guids.items() if known == guid)
            self.guids[name], self.guids[mine] = guid, other

    def switches(self) -> list[Guid]:
        return [guid for unit, guid in self.guids.items() if " " not in unit]

    def plugged(self) -> list[PortId]:
        return sorted(port for cable in self.cables if len(cable) == 2 for port in cable)

    def free(self, guid: Guid) -> list[PortId]:
        used = {port.number for cable in self.cables for port in cable if port.guid == guid}
        return [PortId(guid, number) for number in range(1, RADIX + 1) if number not in used]

    def cable_at(self, port: PortId) -> set[PortId] | None:
        return next((cable for cable in self.cables if port in cable), None)

    def rotate(self, ports: Sequence[PortId]) -> None:
        """The plug in each port goes to the next one, the last one's to the first."""
        held = [self.pull(port) for port in ports]
        for cable, port in zip(held, (*ports[1:], ports[0]), strict=True):
            cable.add(port)

    def pull(self, port: PortId) -> set[PortId]:
        """Take the plug out of the port; the cable, which may hang loose now."""
        cable = self.cable_at(port)
        if cable is None:
            raise LookupError(port)
        cable.remove(port)
        return cable

    def fabric(self) -> Fabric:
        """What a subnet manager sees from the largest part that hangs together."""
        live = [c for c in self.cables if len(c) == 2 and not any(port.guid in self.off for port in c)]
        seen = self._largest_part(live)
        devices = {guid: self._device(guid) for guid in sorted(seen)}
        links = [Link(*sorted(cable), 4, "NDR") for cable in live if all(port.guid in seen for port in cable)]
        return Fabric(devices, tuple(sorted(links, key=lambda link: link.a)))

    def _largest_part(self, live: Iterable[set[PortId]]) -> set[Guid]:
        near = defaultdict(set)
        for a, b in live:
            near[a.guid].add(b.guid)
            near[b.guid].add(a.guid)
        parts, done = [set[Guid]()], set[Guid]()
        for start in sorted(near):
            if start in done:
                continue
            part, todo = set[Guid](), [start]
            while todo:
                guid = todo.pop()
                if guid not in part:
                    part.add(guid)
                    todo += near[guid]
            parts.append(part)
            done |= part
        return max(parts, key=len)

    def _device(self, guid: Guid) -> Device:
        if self.is_switch(guid):
            return Device(guid, DeviceKind.SWITCH, f"MF0;{self.names[guid]}:MQM9700/U1", RADIX)
        return Device(guid, DeviceKind.CA, self.names[guid], 1)

    def bears_a_dark_ones_name(self) -> bool:
        """Whether a switch without power was renamed, or its name given to another."""
        dark = {unit: guid for unit, guid in self.guids.items() if guid in self.off}
        bearers = {(unit, guid) for guid, unit in self.names.items() if unit in dark or guid in self.off}
        return bearers != set(dark.items())

    def as_planned(self) -> bool:
        """All planned cables are plugged in between powered devices of those names, and no other cable is."""
        there = {
            frozenset((self.names[port.guid], port.number) for port in cable)
            for cable in self.cables
            if len(cable) == 2
        }
        wanted = {
            frozenset((unit_of(end), int(end.port) if end.port.isdigit() else 1) for end in cable.ends)
            for cable in self.plan.cables
        }
        return there == wanted and not self.off
