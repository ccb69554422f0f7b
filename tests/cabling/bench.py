"""A small rail-optimised fat tree to break: 6 hosts with 2 adapters, 2 leaves (one per rail), 2 spines, 3 trunks each."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from clusterctl.cabling.explain.verify import CablingVerification, verify
from clusterctl.fleet.fabric.topology import Device, DeviceKind, Fabric, Link, PortId
from clusterctl.fleet.fabric.wiring import PlannedCable, PortName, WiringPlan
from clusterctl.fleet.node import Guid, Location

HOSTS = 6
RAILS = 2
TRUNKS = 3


def port(device: str, number: int | str) -> PortName:
    return PortName(device, str(number))


def pairs() -> list[tuple[PortName, PortName]]:
    """Every planned cable, leaf's end first."""
    host_cables = [
        (port(f"leaf-{rail}", host), port(f"node{host:03d}", f"mlx5_{rail}"))
        for rail in range(RAILS)
        for host in range(1, HOSTS + 1)
    ]
    trunks = [
        (port(f"leaf-{rail}", 33 + spine * TRUNKS + link), port(f"spine-{spine}", 1 + rail * TRUNKS + link))
        for rail in range(RAILS)
        for spine in range(2)
        for link in range(TRUNKS)
    ]
    return host_cables + trunks


def plan() -> WiringPlan:
    cables = tuple(PlannedCable(a, b, line=n) for n, (a, b) in enumerate(pairs(), start=2))
    hosts = [f"node{host:03d}" for host in range(1, HOSTS + 1)]
    places = {host: Location(f"A{1 + n // 4:02d}", 4 + 8 * (n % 4)) for n, host in enumerate(hosts)}
    return WiringPlan(cables, frozenset(hosts), places)


@dataclass
class Bench:
    """What is really plugged in; starts as planned. `rates` are (width, speed) by either end of a cable."""

    cables: set[frozenset[PortName]] = field(default_factory=lambda: {frozenset(pair) for pair in pairs()})
    rates: dict[PortName, tuple[int, str]] = field(default_factory=dict)
    descriptions: dict[str, str] = field(default_factory=dict)

    def far(self, end: PortName) -> PortName:
        (cable,) = (c for c in self.cables if end in c)
        (other,) = cable - {end}
        return other

    def unplug(self, end: PortName) -> None:
        self.cables.remove(frozenset((end, self.far(end))))

    def plug(self, a: PortName, b: PortName) -> None:
        self.cables.add(frozenset((a, b)))

    def rotate(self, *ends: PortName) -> None:
        """The plug in each end goes to the next one, the last one's to the first."""
        others = [self.far(end) for end in ends]
        for end in ends:
            self.unplug(end)
        for end, other in zip((*ends[1:], ends[0]), others, strict=True):
            self.plug(end, other)

    def move(self, end: PortName, to: PortName) -> None:
        other = self.far(end)
        self.unplug(end)
        self.plug(to, other)

    def unplug_device(self, device: str) -> None:
        self.cables = {cable for cable in self.cables if all(end.device != device for end in cable)}

    def fabric(self) -> Fabric:
        """As a subnet manager on spine-0 sees it."""
        seen = self._reachable("spine-0")
        units = sorted({_unit(end) for cable in seen for end in cable})
        guids = {unit: Guid(f"{number:016x}") for number, unit in enumerate(units, start=0x1000)}
        devices = {
            guid: Device(guid, _kind(unit), self._description(unit), 1 if _kind(unit) is DeviceKind.CA else 64)
            for unit, guid in guids.items()
        }
        return Fabric(devices, tuple(self._link(cable, guids) for cable in seen))

    def verify(self, **options: float | None) -> CablingVerification:
        return verify(plan(), self.fabric(), **options)

    def _link(self, cable: frozenset[PortName], guids: dict[str, Guid]) -> Link:
        ends = sorted(PortId(guids[_unit(e)], int(e.port) if e.port.isdigit() else 1) for e in cable)
        rate = next((self.rates[end] for end in cable if end in self.rates), (4, "NDR"))
        return Link(ends[0], ends[1], *rate)

    def _reachable(self, start: str) -> list[frozenset[PortName]]:
        found, todo, done = [], [start], set()
        while todo:
            unit = todo.pop()
            if unit in done:
                continue
            done.add(unit)
            here = [cable for cable in self.cables if unit in map(_unit, cable)]
            found += [cable for cable in here if cable not in found]
            todo += [_unit(end) for cable in here for end in cable]
        return sorted(found, key=sorted)

    def _description(self, unit: str) -> str:
        default = unit if _kind(unit) is DeviceKind.CA else f"MF0;{unit}:MQM9700/U1"
        return self.descriptions.get(unit, default)


def _unit(end: PortName) -> str:
    return end.device if end.port.isdigit() else f"{end.device} {end.port}"


def _kind(unit: str) -> DeviceKind:
    return DeviceKind.CA if " " in unit or unit.startswith("MT") else DeviceKind.SWITCH


def kinds(verification: CablingVerification) -> list[str]:
    return [explanation.kind.value for explanation in verification.explanations]


def actions(verification: CablingVerification) -> Iterable[str]:
    return [explanation.action for explanation in verification.explanations]
