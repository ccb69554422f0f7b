"""LLDP reports of many devices → Ethernet cables, with the plan's names.

One end or both ends report a cable. A sender is identified by the MAC address of its port where the plan or a report
has it, else by the name of its device, with or without domain.

A report may be wrong or invented. So a planned cable that one of its ends reports, and the other does not deny, is
settled: what a third device reports of its ports is disputed, and a finding on that device only.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from clusterctl.fleet.fabric.wiring import PortName, WiringPlan
from clusterctl.fleet.network.lldp import LldpReport, Neighbour
from clusterctl.fleet.node import Mac


@dataclass(frozen=True, slots=True)
class LldpCable:
    """A cable that at least one end reports."""

    ends: frozenset[PortName]


@dataclass(frozen=True, slots=True)
class LldpCables:
    """`unclear`: ports with several neighbours, or with a neighbour that reports another one; their cable is unknown.

    `disputed`: the ports among them whose own report alone is in doubt. Each has its reason.
    """

    cables: tuple[LldpCable, ...]
    unclear: Mapping[PortName, str]
    disputed: Mapping[PortName, str] = field(default_factory=dict)


def lldp_cables(plan: WiringPlan, reports: Mapping[str, LldpReport]) -> LldpCables:
    """Return the observed cables; `reports` has the LLDP report of each planned device."""
    far, unclear = _far_ends(_Directory(plan, reports), reports)
    settled = _settled(plan, far, unclear)
    disputed = _disputed(plan, far, settled, reports)
    unclear |= disputed
    for port, other in far.items():
        back = far.get(other)
        if back not in (None, port) and other not in disputed and port not in disputed:
            unclear |= dict.fromkeys((port, other), f"{port} receives LLDP from {other}, {other} from {back}")
    cables = {frozenset((port, other)) for port, other in far.items() if not {port, other} & unclear.keys()}
    return _single(cables, unclear, disputed)


def _settled(
    plan: WiringPlan, far: Mapping[PortName, PortName], unclear: Mapping[PortName, str]
) -> dict[PortName, PortName]:
    """Return both ends of the planned cables that one end reports and the other does not deny."""
    settled: dict[PortName, PortName] = {}
    for cable in plan.cables:
        one, other = cable.source, cable.destination
        agree = far.get(one, other) == other and far.get(other, one) == one
        if agree and not unclear.keys() & cable.ends and far.keys() & cable.ends:
            settled |= {one: other, other: one}
    return settled


def _disputed(
    plan: WiringPlan,
    far: Mapping[PortName, PortName],
    settled: Mapping[PortName, PortName],
    reports: Mapping[str, LldpReport],
) -> dict[PortName, str]:
    """Return the ports that report a port of a settled cable, and a host's that report another host's, which denies it.

    Of a switch, the second counts as a sighting.
    """
    disputed = {}
    listening = plan.hosts & reports.keys()
    for port, other in far.items():
        if port in settled:
            continue
        if other in settled:
            disputed[port] = f"{_listed([port, settled[other]])} both receive LLDP from {other}"
        elif {port.device, other.device} <= listening and other not in far:
            disputed[port] = f"{port} receives LLDP from {other}, which receives none"
    return disputed


def _far_ends(
    directory: _Directory, reports: Mapping[str, LldpReport]
) -> tuple[dict[PortName, PortName], dict[PortName, str]]:
    """Return the port at the other end of each port, and why the others have none."""
    unclear: dict[PortName, str] = {}
    far: dict[PortName, PortName] = {}
    for device, report in reports.items():
        senders: dict[PortName, set[PortName]] = defaultdict(set)
        for neighbour in report.neighbours:
            senders[PortName(device, neighbour.interface)].add(directory.port_of(neighbour))
        for port, ends in senders.items():
            known = {end for end in ends if end.device in directory.devices} or ends
            if len(known) > 1 or port in known:
                unclear[port] = f"{port} receives LLDP from {_listed(known)}"
            else:
                far[port] = known.pop()
    return far, unclear


def _single(
    cables: Iterable[frozenset[PortName]], unclear: dict[PortName, str], disputed: Mapping[PortName, str]
) -> LldpCables:
    """Drop ports that two others report: an unmanaged switch may be between them."""
    users: dict[PortName, list[PortName]] = defaultdict(list)
    cables = sorted(cables, key=sorted)
    for ends in cables:
        for port in ends:
            users[port] += ends - {port}
    for port, others in users.items():
        if len(others) > 1:
            unclear |= dict.fromkeys((port, *others), f"{_listed(others)} both receive LLDP from {port}")
    return LldpCables(tuple(LldpCable(ends) for ends in cables if not ends & unclear.keys()), unclear, disputed)


def _listed(ports: Iterable[PortName]) -> str:
    return " and ".join(str(port) for port in sorted(ports))


class _Directory:
    """Finds the port of a sender, by MAC address or name."""

    def __init__(self, plan: WiringPlan, reports: Mapping[str, LldpReport]) -> None:
        self.ports = {end for cable in plan.cables for end in cable.ends}
        self.devices = {end.device for end in self.ports} | reports.keys()
        self._names = {device.lower(): device for device in self.devices}
        self._macs = _unique_macs(reports) | {mac: port for port, mac in plan.macs.items()}

    def port_of(self, neighbour: Neighbour) -> PortName:
        """Return the planned port, if it is one; else the sender's own name."""
        by_mac = self._macs.get(neighbour.port_mac) if neighbour.port_mac else None
        if by_mac is not None:
            return by_mac
        device = self._device(neighbour)
        names = neighbour.ports or (neighbour.port_mac or "?",)
        candidates = [PortName(device, name) for name in names]
        return next((port for port in candidates if port in self.ports), candidates[0])

    def _device(self, neighbour: Neighbour) -> str:
        name = neighbour.chassis
        for spelling in (name.lower(), name.lower().split(".")[0]):
            if spelling in self._names:
                return self._names[spelling]
        port = self._macs.get(neighbour.chassis_mac) if neighbour.chassis_mac else None
        return port.device if port is not None else name


def _unique_macs(reports: Mapping[str, LldpReport]) -> dict[Mac, PortName]:
    """Return the ports by the MAC addresses that exactly one device reports as its own."""
    owners: dict[Mac, set[str]] = defaultdict(set)
    ports: dict[Mac, PortName] = {}
    for device, report in reports.items():
        for name, mac in report.interfaces.items():
            owners[mac].add(device)
            ports[mac] = PortName(device, name)
    return {mac: port for mac, port in ports.items() if len(owners[mac]) == 1}
