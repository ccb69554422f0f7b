"""Which planned port an observed port is: by GUID where an inventory knows it, else by node description."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TypeVar

from clusterctl.fleet.fabric import Device, DeviceKind, Fabric, Link, PortId
from clusterctl.fleet.node import Guid
from clusterctl.fleet.wiring import PortName, WiringPlan

Hosts = Mapping[Guid, PortName]
"""Node or port GUID → host and HCA, from BMC or host inventory; `port` is empty where only the host is known."""

T = TypeVar("T")
_SWITCH = re.compile(r"(?:MF\d+;)?([^:;]+)(?::[^/]*/?(.*))?$")
_LAST_NUMBER = re.compile(r".*\D")
_CA = re.compile(r"(\S+)\s+(\S*\d)$")


@dataclass(frozen=True, slots=True)
class ObservedCable:
    """A link that is up, its ends by name."""

    ends: frozenset[PortName]
    link: Link


@dataclass(frozen=True, slots=True)
class Claim:
    """Ports that all claim to be `name`, none of which can be believed."""

    name: PortName
    ports: tuple[PortId, ...]


def name_ports(fabric: Fabric, plan: WiringPlan, hosts: Hosts) -> tuple[dict[PortId, PortName], tuple[Claim, ...]]:
    """The name of every cabled port, no name twice; and the claims that had to be refused.

    Where several claim one name, a GUID beats a description, and the one that is plugged in where the plan says so
    beats the others. Who loses is called by description and GUID.
    """
    cables = fabric.cables()
    peers = {port: planned for cable in plan.cables for port, planned in _both_ways(cable.source, cable.destination)}
    far = {port: other for link in cables for port, other in _both_ways(link.a, link.b)}
    wanted = {port: _name(fabric, port, peers, hosts) for port in far}
    claims: dict[PortName, list[PortId]] = defaultdict(list)
    for port, name in wanted.items():
        claims[name].append(port)
    refused = []
    for name, ports in claims.items():
        if len(ports) < 2:
            continue
        proven = [p for p in ports if _inventoried(fabric, p, hosts) is not None]
        placed = [p for p in ports if wanted[far[p]] == peers.get(name)]
        believed = next((group[0] for group in (proven, placed) if len(group) == 1), None)
        for port in ports:
            if port != believed:
                device = fabric.devices[port.guid]
                wanted[port] = PortName(f"{device.description} [{port.guid}]", str(port.number))
        if believed is None:
            refused.append(Claim(name, tuple(ports)))
    return wanted, tuple(refused)


def named_cables(fabric: Fabric, names: Mapping[PortId, PortName]) -> tuple[ObservedCable, ...]:
    return tuple(ObservedCable(frozenset((names[link.a], names[link.b])), link) for link in fabric.cables())


def _both_ways(a: T, b: T) -> Iterator[tuple[T, T]]:
    yield a, b
    yield b, a


def _name(fabric: Fabric, port: PortId, planned: Mapping[PortName, PortName], hosts: Hosts) -> PortName:
    candidates = list(_candidates(fabric, port, hosts))
    return next((name for name in candidates if name in planned), candidates[0])


def _candidates(fabric: Fabric, port: PortId, hosts: Hosts) -> Iterator[PortName]:
    """Names that the port may have in a plan, the most telling first."""
    device = fabric.devices[port.guid]
    number = str(port.number)
    if device.kind is not DeviceKind.CA:
        yield from _switch_candidates(device.description, number)
        return
    match = _CA.match(device.description)
    host, hca = match.groups() if match else (device.description, "")
    inventoried = _inventoried(fabric, port, hosts)
    if inventoried is not None:
        host, hca = inventoried.device, inventoried.port or hca
    if hca:
        if port.number > 1:
            yield PortName(host, f"{hca}/{number}")
        yield PortName(host, hca)
        yield PortName(f"{host}-{_LAST_NUMBER.sub('', hca)}", number)
    if inventoried is None:
        yield PortName(device.description, number)
    yield PortName(host, number)


def _switch_candidates(description: str, number: str) -> Iterator[PortName]:
    """`MF0;leaf-1:MQM9700/U1` is called leaf-1; the boards of a modular switch leaf-1/L01/U1."""
    match = _SWITCH.match(description)
    if match:
        yield PortName(match[1], number)
        if match[2]:
            yield PortName(f"{match[1]}/{match[2]}", number)
    yield PortName(description, number)


def _inventoried(fabric: Fabric, port: PortId, hosts: Hosts) -> PortName | None:
    """By node GUID; by port GUID only where that is no other device's node GUID."""
    device: Device = fabric.devices[port.guid]
    own = [guid for guid in device.port_guids if guid not in fabric.devices]
    return next((hosts[guid] for guid in (device.guid, *own) if guid in hosts), None)
