"""Names of observed devices: by GUID from an inventory, else by node description.

A device is named as a whole, never port by port: two switches with one name must stay two switches.
"""

from __future__ import annotations

import re
import unicodedata
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import chain

from clusterctl.fleet.fabric.topology import Device, DeviceKind, Fabric, Link, PortId
from clusterctl.fleet.fabric.wiring import PortName, WiringPlan, board_port
from clusterctl.fleet.node import Guid

Hosts = Mapping[Guid, PortName]
"""Node or port GUID → host and HCA, from BMC or host inventory; `port` is empty where only the host is known."""

Unit = PortName
"""A named unit: a switch or host (`port` empty), or one adapter of a host."""

_SWITCH = re.compile(r"(?:MF\d+;)?([^:;]+)(?::[^/]*/?(.*))?$")
_BOARD = re.compile(r"(?:MF\d+;)?([^:;/]+)(?::[^/]*)?/([LS]\d{1,2})/U(\d+)$", re.IGNORECASE)
"""`MF0;core-1:MCS8500/L16/U2`: one chip of a board of a modular switch."""
_LAST_NUMBER = re.compile(r".*\D")
_CA = re.compile(r"(\S+)\s+(\S*\d)$")
_JOINED = re.compile(r"([^\s:]+)[:-]((?:ib|mlx\d+_|hca-?)\d+)$", re.IGNORECASE)
"""`node001:mlx5_0`, `node001-ib0`: host and adapter in one word."""
_REVERSED = re.compile(r"(mlx\d+_\d+)\s+(\S+)$", re.IGNORECASE)
"""`mlx5_0 node001`: the adapter first."""
_CHIP = re.compile(r"[LS]\d{2}/U\d+$")
_LOOK_ALIKE = str.maketrans(
    "\u0430\u0432\u0435\u043a\u043c\u043d\u043e\u0440\u0441\u0442\u0443\u0445\u0456\u0458\u0455\u03b1\u03bf\u03c1\u03bd\u03b9\u03ba",
    "abekmhopctyxijsaopvik",
    "",
) | {ord("_"): "-", 0x2212: "-"}
"""Cyrillic and Greek letters that print like Latin ones; underscore and minus sign as hyphen."""


@dataclass(frozen=True, slots=True)
class ObservedCable:
    """A link that is up, with the names of its ends."""

    ends: frozenset[PortName]
    link: Link


@dataclass(frozen=True, slots=True)
class NameClaim:
    """A name of several devices, without proof which of them is right; `ports` are their cabled ports, `labels` the
    replacement names.
    """

    name: Unit
    ports: tuple[PortId, ...]
    labels: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Named:
    """Unique name of every cabled port; refused claims; GUIDs that an inventory has.

    `respelled`: observed spelling of a device → the plan's spelling of the same name.
    """

    ports: Mapping[PortId, PortName]
    refused: tuple[NameClaim, ...]
    proven: frozenset[Guid]
    respelled: Mapping[str, str]


@lru_cache(1 << 16)
def folded(name: str) -> str:
    """Return a name without case, invisible characters and look-alike letters; all dashes become hyphens."""
    if name.isascii() and name.isprintable():
        return name.lower().replace("_", "-").strip()
    visible = (c for c in unicodedata.normalize("NFKC", name) if unicodedata.category(c) not in ("Cc", "Cf"))
    dashed = ("-" if unicodedata.category(c) == "Pd" else c for c in visible)
    return "".join(dashed).casefold().translate(_LOOK_ALIKE).strip()


def short(name: str) -> str:
    """Return a folded name without its domain."""
    return folded(name).partition(".")[0]


class PlanNames:
    """The names of a plan, found by another spelling of them: other case, with or without a domain."""

    def __init__(self, ports: Iterable[PortName]) -> None:
        self.ports = frozenset(ports) | {PortName(port.device, "") for port in ports}
        self._devices = dict.fromkeys(port.device for port in self.ports)

    @cached_property
    def _full(self) -> dict[str, str]:
        return _unique(self._devices, folded)

    @cached_property
    def _short(self) -> dict[str, str]:
        return _unique(self._devices, short)

    @cached_property
    def _adapters(self) -> dict[str, dict[str, str]]:
        """The planned spelling of adapters by device and folded name."""
        adapters: dict[str, set[str]] = defaultdict(set)
        for port in self.ports:
            adapters[port.device] |= {port.port, port.port.partition("/")[0]} - {""}
        return {device: _unique(names, folded) for device, names in adapters.items()}

    def device(self, name: str) -> str:
        """Return the planned spelling of a device name, or the name itself."""
        if name in self._devices:
            return name
        return self._full.get(folded(name)) or self._short.get(short(name)) or name

    def unit(self, unit: Unit) -> Unit:
        """Return the planned spelling of a unit, or the unit itself."""
        device = self.device(unit.device)
        return PortName(device, self._adapters.get(device, {}).get(folded(unit.port), unit.port))


def _unique(names: Iterable[str], key: Callable[[str], str]) -> dict[str, str]:
    """Return the names by key, without those that share one."""
    found: dict[str, list[str]] = defaultdict(list)
    for name in names:
        found[key(name)].append(name)
    return {folded_name: same[0] for folded_name, same in found.items() if len(same) == 1}


def name_ports(fabric: Fabric, plan: WiringPlan, hosts: Hosts) -> Named:
    """Return the names of all cabled ports.

    If several devices have one name, a GUID from the inventory wins, then the device with the most planned cables. The
    others are named by description and GUID, and so are adapters with no more than the name of a host all of whose
    planned adapters are there.
    """
    far, cabled = _cabled(fabric)
    peers = peers_of(plan)
    planned = PlanNames(peers.keys())
    proven = frozenset(guid for guid in cabled if _inventoried(fabric.devices[guid], fabric, hosts) is not None)
    units = {guid: _unit(fabric, guid, ports, planned, hosts) for guid, ports in cabled.items()}
    names = {port: _port_name(units[guid][1], port.number) for guid, ports in cabled.items() for port in ports}
    superfluous = set(_superfluous(fabric, units, names, cabled, peers)) - proven
    names |= _labelled(_described(fabric, superfluous), cabled)
    refused = []
    for unit, guids in _shared({guid: units[guid][1] for guid in units if guid not in superfluous}).items():
        placed = {g: _placed(cabled[g], names, far, peers) for g in guids}
        trusted = _trusted(guids, proven, placed)
        labels = _described(fabric, (guid for guid in guids if guid != trusted))
        names |= _labelled(labels, cabled)
        if trusted is None:
            refused.append(NameClaim(unit, _ports_of(guids, cabled), tuple(labels.values())))
    return Named(names, tuple(refused), proven, _respelled(units.values()))


def _placed(
    ports: Iterable[PortId],
    names: Mapping[PortId, PortName],
    far: Mapping[PortId, PortId],
    peers: Mapping[PortName, PortName],
) -> int:
    """Return how many of the ports are cabled as planned, by the names so far."""
    return sum(peers.get(names[port]) == names[far[port]] for port in ports)


def _described(fabric: Fabric, guids: Iterable[Guid]) -> dict[Guid, str]:
    """Return names that no other device has: description and GUID."""
    return {guid: f"{fabric.devices[guid].description} [{guid}]" for guid in guids}


def _superfluous(
    fabric: Fabric,
    units: Mapping[Guid, tuple[Unit, Unit]],
    names: Mapping[PortId, PortName],
    cabled: Mapping[Guid, list[PortId]],
    peers: Mapping[PortName, PortName],
) -> Iterator[Guid]:
    """Yield adapters with the name of a host only, where other devices have the names of all its planned adapters."""
    taken, planned = set(names.values()), defaultdict(set)
    for port in peers:
        planned[port.device].add(port)
    for guid, (_, unit) in units.items():
        adapters = planned.get(unit.device, set())
        own = {names[port] for port in cabled[guid]}
        is_bare = fabric.devices[guid].kind is DeviceKind.CA and not unit.port
        if is_bare and adapters and adapters <= taken and adapters.isdisjoint(own):
            yield guid


def _labelled(labels: Mapping[Guid, str], cabled: Mapping[Guid, list[PortId]]) -> dict[PortId, PortName]:
    """Return the names of the ports of devices that got a label as their name."""
    return {port: PortName(label, str(port.number)) for guid, label in labels.items() for port in cabled[guid]}


def _ports_of(guids: Iterable[Guid], cabled: Mapping[Guid, list[PortId]]) -> tuple[PortId, ...]:
    return tuple(port for guid in guids for port in cabled[guid])


def _respelled(units: Iterable[tuple[Unit, Unit]]) -> dict[str, str]:
    """Return the plan's spelling by the observed one, where they differ."""
    return {own.device: planned.device for own, planned in units if own.device != planned.device}


def _cabled(fabric: Fabric) -> tuple[dict[PortId, PortId], dict[Guid, list[PortId]]]:
    """Return the far end of each cabled port, and the cabled ports of each device."""
    far: dict[PortId, PortId] = {}
    cabled: dict[Guid, list[PortId]] = defaultdict(list)
    for link in fabric.cables():
        far[link.a], far[link.b] = link.b, link.a
        for port in (link.a, link.b):
            cabled[port.guid].append(port)
    return far, cabled


def _shared(units: Mapping[Guid, Unit]) -> dict[Unit, list[Guid]]:
    """Return the devices of each name that several devices have."""
    claims: dict[Unit, list[Guid]] = defaultdict(list)
    for guid, unit in units.items():
        claims[unit].append(guid)
    return {unit: guids for unit, guids in claims.items() if len(guids) > 1}


def peers_of(plan: WiringPlan) -> dict[PortName, PortName]:
    """Return the port at the other end of each planned port."""
    peers = {}
    for cable in plan.cables:
        peers[cable.source], peers[cable.destination] = cable.destination, cable.source
    return peers


def named_cables(fabric: Fabric, names: Mapping[PortId, PortName]) -> tuple[ObservedCable, ...]:
    """Return the cables of the fabric with these names, without the links between boards of one chassis."""
    ends = ((names[link.a], names[link.b], link) for link in fabric.cables())
    outer = (end for end in ends if end[0].device != end[1].device or not _inner(end[0], end[1]))
    return tuple(ObservedCable(frozenset((a, b)), link) for a, b, link in outer)


def _inner(a: PortName, b: PortName) -> bool:
    """Return whether a link between two ports of one device is on its backplane: one end is a spine board."""
    return "S" in (a.board[:1], b.board[:1])


def _trusted(guids: Iterable[Guid], proven: frozenset[Guid], placed: Mapping[Guid, int]) -> Guid | None:
    """Return the device to which a name belongs, by the inventory, else by most cables as planned; None if unknown."""
    inventoried = proven.intersection(guids)
    if len(inventoried) == 1:
        return next(iter(inventoried))
    most = max(placed.values())
    best = [guid for guid, count in placed.items() if count == most]
    return best[0] if most and len(best) == 1 else None


def _port_name(unit: Unit, number: int) -> PortName:
    if not unit.port:
        return PortName(unit.device, str(number))
    if _CHIP.match(unit.port):
        return PortName(unit.device, f"{unit.port}/{number}")
    return unit if number == 1 or "/" in unit.port else PortName(unit.device, f"{unit.port}/{number}")


def _unit(fabric: Fabric, guid: Guid, ports: Iterable[PortId], planned: PlanNames, hosts: Hosts) -> tuple[Unit, Unit]:
    """Return the device's own name and its planned spelling: the first that the plan has, else the most specific."""
    device = fabric.devices[guid]
    if device.kind is not DeviceKind.CA:
        units = list(_switch_units(device.description))
        numbers: list[int] = []
    else:
        numbers = [port.number for port in ports]
        units = list(_adapter_units(fabric, device, numbers, hosts))
    pairs = chain(((unit, unit) for unit in units), ((unit, planned.unit(unit)) for unit in units))
    names = ((pair, [_port_name(pair[1], number) for number in numbers] or [pair[1]]) for pair in pairs)
    fits = (pair for pair, spelled in names if not planned.ports.isdisjoint(spelled))
    return next(fits, None) or (units[0], planned.unit(units[0]))


def _switch_units(description: str) -> Iterator[Unit]:
    """Yield the names of a switch: `MF0;leaf-1:MQM9700/U1` → leaf-1; for a board of a chassis both of them."""
    board = _BOARD.match(description)
    match = _SWITCH.match(description)
    if board:
        yield PortName(board[1], board_port(board[2], int(board[3]), 0).rpartition("/")[0])
    elif match:
        yield PortName(match[1], "")
        if match[2]:
            yield PortName(f"{match[1]}/{match[2]}", "")
    yield PortName(description, "")


def _adapter_units(fabric: Fabric, device: Device, numbers: list[int], hosts: Hosts) -> Iterator[Unit]:
    """Yield names that a plan may use, the most specific first: `node007 mlx5_0`, `node007-0`, the description."""
    host, hca = _host_and_adapter(device.description)
    inventoried = _inventoried(device, fabric, hosts)
    if inventoried is not None:
        host, hca = inventoried.device, inventoried.port or hca
    if hca:
        yield PortName(host, hca)
        if numbers != [1] and len(numbers) == 1:
            yield PortName(host, f"{hca}/{numbers[0]}")
        yield PortName(f"{host}-{_LAST_NUMBER.sub('', hca)}", "")
    if inventoried is None:
        yield PortName(device.description, "")
    yield PortName(host, "")


def _host_and_adapter(description: str) -> tuple[str, str]:
    """Return host and adapter; the whole description and no adapter where it has no such form."""
    bare = description[1:-1] if description[:1] in "'\"" and description[:1] == description[-1:] else description
    if reverse := _REVERSED.match(bare):
        return reverse[2], reverse[1]
    match = _CA.match(bare) or _JOINED.match(bare)
    return (match[1], match[2]) if match else (description, "")


def _inventoried(device: Device, fabric: Fabric, hosts: Hosts) -> PortName | None:
    """Return the inventory's name by node GUID; by port GUID only where it is not another device's node GUID."""
    if not hosts:
        return None
    own = [guid for guid in device.port_guids if guid not in fabric.devices]
    return next((hosts[guid] for guid in (device.guid, *own) if guid in hosts), None)
