"""NetBox's devices → the rows of the node sheet, and the conflicts that an operator has to solve in NetBox."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from ipaddress import ip_interface

from clusterctl.fleet.node import Mac
from clusterctl.formats.identifiers import is_host_name, read_mac
from clusterctl.formats.netbox.records import (
    NetboxAddress,
    NetboxConflict,
    NetboxConflictKind,
    NetboxDevice,
    NetboxInterface,
)

GONE = frozenset({"decommissioning"})
UNUSED = frozenset({"deprecated"})
"""Status of an address that no machine has any more."""
LARGEST_UNIT = 60


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeChoice:
    """Which devices are nodes, by the slugs of their roles and their status, and where NetBox has SKU and BMC MAC.

    `skus` maps a value of the custom field, or the slug of a device type, to the site's name of the SKU.
    """

    roles: frozenset[str]
    statuses: frozenset[str]
    sku_field: str = ""
    bmc_mac_field: str = ""
    skus: Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeRow:
    """What NetBox knows of one node; empty where it knows nothing. `device` is NetBox's id."""

    device: int
    name: str
    bmc: str
    serial: str = ""
    rack: str = ""
    unit: int | None = None
    bmc_mac: Mac | None = None
    boot_mac: Mac | None = None
    address: str = ""
    sku: str = ""

    @property
    def path(self) -> str:
        return f"dcim/devices/{self.device}/"

    @property
    def cells(self) -> Mapping[str, str]:
        """Return the cells of the sheet by our names of the columns, `name` apart."""
        return {
            "bmc": self.bmc,
            "serial": self.serial,
            "rack": self.rack,
            "unit": "" if self.unit is None else str(self.unit),
            "bmc_mac": self.bmc_mac or "",
            "boot_mac": self.boot_mac or "",
            "address": self.address,
        }


@dataclass(frozen=True, slots=True)
class Ports:
    """The interfaces of all devices, and the addresses of each interface."""

    interfaces: Mapping[int, NetboxInterface]
    addresses: Mapping[int, Sequence[NetboxAddress]]

    @classmethod
    def of(cls, interfaces: Iterable[NetboxInterface], addresses: Iterable[NetboxAddress]) -> Ports:
        by_interface: dict[int, list[NetboxAddress]] = defaultdict(list)
        for address in addresses:
            if address.status not in UNUSED:
                by_interface[address.interface].append(address)
        return cls({one.id: one for one in interfaces}, by_interface)

    def by_device(self) -> Mapping[int, list[NetboxInterface]]:
        """Return the interfaces of each device."""
        found: dict[int, list[NetboxInterface]] = defaultdict(list)
        for one in self.interfaces.values():
            found[one.device].append(one)
        return found


def chosen(devices: Iterable[NetboxDevice], choice: NodeChoice) -> tuple[list[NetboxDevice], list[NetboxConflict]]:
    """Return the devices that are nodes, and a conflict for each that a node's role has and yet is none."""
    found: list[NetboxDevice] = []
    conflicts: list[NetboxConflict] = []
    for device in devices:
        if device.role not in choice.roles:
            continue
        refusal = _refusal(device, choice)
        if refusal is None:
            found.append(device)
        else:
            conflicts.append(refusal)
    return found, conflicts


def _refusal(device: NetboxDevice, choice: NodeChoice) -> NetboxConflict | None:
    """Return why a device is no node by its status or name; None where it is one."""
    if device.status in GONE:
        return _left_out(device, NetboxConflictKind.DECOMMISSIONED, "is being decommissioned")
    if device.status not in choice.statuses:
        return _left_out(device, NetboxConflictKind.STATUS, f"has the status {device.status or 'unknown'}")
    if not device.name:
        return _left_out(device, NetboxConflictKind.NAME, "has no name")
    if not is_host_name(device.name.lower()):
        return _left_out(
            device, NetboxConflictKind.NAME, "its name is no host name: letters, digits and dashes, 63 at most"
        )
    return None


def _left_out(device: NetboxDevice, kind: NetboxConflictKind, text: str) -> NetboxConflict:
    return NetboxConflict(subject=device.label, kind=kind, text=text, path=device.path)


def node_rows(
    nodes: Sequence[NetboxDevice], ports: Ports, choice: NodeChoice
) -> tuple[list[NodeRow], list[NetboxConflict]]:
    """Return a row for each node that can be taken over. No value that must be unique stands in two rows."""
    by_device = ports.by_device()
    rows: list[NodeRow] = []
    conflicts: list[NetboxConflict] = []
    for device in nodes:
        row, found = _row(device, by_device.get(device.id, []), ports, choice)
        conflicts += found
        if row is not None:
            rows.append(row)
    for what, value in _UNIQUE.items():
        rows, found = _without_duplicates(rows, what, value)
        conflicts += found
    for what, value, empty in _SINGLE:
        rows, found = _emptied_duplicates(rows, what, value, empty)
        conflicts += found
    return rows, conflicts


def _row(
    device: NetboxDevice, interfaces: Sequence[NetboxInterface], ports: Ports, choice: NodeChoice
) -> tuple[NodeRow | None, list[NetboxConflict]]:
    management = [one for one in interfaces if one.mgmt_only]
    bmc = _bmc_address(device, management, ports)
    if isinstance(bmc, NetboxConflict):
        return None, [bmc]
    mac, mac_conflicts = _bmc_mac(device, _with_address(management, bmc, ports), choice)
    unit, unit_conflicts = _unit(device)
    host = device.primary4 or device.primary6
    boot = _with_address([one for one in interfaces if not one.mgmt_only], _plain(host), ports) if host else None
    is_own = bool(host) and _plain(host) != bmc and _is_single(host)
    row = NodeRow(
        device=device.id,
        name=device.name.lower(),
        bmc=bmc,
        serial=device.serial,
        rack=device.rack,
        unit=unit,
        bmc_mac=mac,
        boot_mac=boot.mac if boot else None,
        address=_plain(host) if is_own else "",
        sku=sku_of(device, choice),
    )
    return row, [*mac_conflicts, *unit_conflicts]


def sku_of(device: NetboxDevice, choice: NodeChoice) -> str:
    """Return the name of the device's SKU by the custom field, else by the device type; empty where none is mapped."""
    value = device.custom.get(choice.sku_field, "") if choice.sku_field else ""
    return choice.skus.get(value, value) or choice.skus.get(device.device_type, "")


def _plain(address: str) -> str:
    return str(ip_interface(address).ip) if address else ""


def _bmc_address(device: NetboxDevice, management: Sequence[NetboxInterface], ports: Ports) -> str | NetboxConflict:
    """Return the BMC's address: `oob_ip`, else the only one of the management interfaces."""
    if device.oob:
        return _of_one_machine(device, _plain(device.oob))
    found = {_plain(one.address) for port in management for one in ports.addresses.get(port.id, ())}
    if len(found) == 1:
        return _of_one_machine(device, found.pop())
    what = f"has {len(found)} BMC addresses and no oob_ip" if found else "has no BMC address"
    return _left_out(device, NetboxConflictKind.ADDRESS, what)


def _of_one_machine(device: NetboxDevice, address: str) -> str | NetboxConflict:
    if _is_single(address):
        return address
    return _left_out(device, NetboxConflictKind.ADDRESS, f"its BMC address {address} is not that of one machine")


def _is_single(address: str) -> bool:
    found = ip_interface(address).ip
    return not (found.is_unspecified or found.is_multicast or str(found) == "255.255.255.255")


def _with_address(interfaces: Sequence[NetboxInterface], address: str, ports: Ports) -> NetboxInterface | None:
    """Return the interface that has an address, else the only interface that a management address can be of."""
    for port in interfaces:
        if any(_plain(one.address) == address for one in ports.addresses.get(port.id, ())):
            return port
    management = [one for one in interfaces if one.mgmt_only]
    return management[0] if len(management) == 1 else None


def _bmc_mac(
    device: NetboxDevice, port: NetboxInterface | None, choice: NodeChoice
) -> tuple[Mac | None, list[NetboxConflict]]:
    """Return the BMC's MAC by interface and custom field; none where the two differ."""
    own = port.mac if port else None
    written = device.custom.get(choice.bmc_mac_field, "") if choice.bmc_mac_field else ""
    if not written:
        return own, []
    try:
        custom = read_mac(written)
    except ValueError:
        text = f"its {choice.bmc_mac_field} is no MAC address"
        return own, [_partly(device, NetboxConflictKind.MAC, text)]
    if own is None or own == custom:
        return custom, []
    text = f"its {choice.bmc_mac_field} is {custom}, but the BMC's interface has {own}: bmc_mac is not taken over"
    return None, [_partly(device, NetboxConflictKind.MAC, text)]


def _partly(device: NetboxDevice, kind: NetboxConflictKind, text: str) -> NetboxConflict:
    return NetboxConflict(subject=device.label, kind=kind, text=text, path=device.path, left_out=False)


def _unit(device: NetboxDevice) -> tuple[int | None, list[NetboxConflict]]:
    if device.unit is None:
        return None, []
    if device.unit.is_integer() and 1 <= device.unit <= LARGEST_UNIT:
        return int(device.unit), []
    text = f"its position {device.unit:g} is no rack unit from 1 to {LARGEST_UNIT}: unit is not taken over"
    return None, [_partly(device, NetboxConflictKind.PLACE, text)]


_UNIQUE: Mapping[str, Callable[[NodeRow], str]] = {
    "name": lambda row: row.name,
    "serial": lambda row: row.serial.casefold(),
    "BMC address": lambda row: row.bmc,
}
"""Without these a node is none, or another one: devices that share one are left out."""
_SINGLE: tuple[tuple[str, Callable[[NodeRow], str], Callable[[NodeRow], NodeRow]], ...] = (
    (
        "rack unit",
        lambda row: f"{row.rack} U{row.unit}" if row.rack and row.unit is not None else "",
        lambda row: replace(row, unit=None),
    ),
    ("boot MAC", lambda row: row.boot_mac or "", lambda row: replace(row, boot_mac=None)),
    ("host address", lambda row: row.address, lambda row: replace(row, address="")),
)
"""What is left empty where two devices share it."""


def _shared(rows: Sequence[NodeRow], value: Callable[[NodeRow], str]) -> frozenset[str]:
    counted = Counter(value(row) for row in rows)
    return frozenset(one for one, times in counted.items() if one and times > 1)


def _without_duplicates(
    rows: Sequence[NodeRow], what: str, value: Callable[[NodeRow], str]
) -> tuple[list[NodeRow], list[NetboxConflict]]:
    twice = _shared(rows, value)
    conflicts = [_duplicate(row, rows, what, value, left_out=True) for row in rows if value(row) in twice]
    return [row for row in rows if value(row) not in twice], conflicts


def _emptied_duplicates(
    rows: Sequence[NodeRow], what: str, value: Callable[[NodeRow], str], empty: Callable[[NodeRow], NodeRow]
) -> tuple[list[NodeRow], list[NetboxConflict]]:
    twice = _shared(rows, value)
    conflicts = [_duplicate(row, rows, what, value, left_out=False) for row in rows if value(row) in twice]
    return [empty(row) if value(row) in twice else row for row in rows], conflicts


def _duplicate(
    row: NodeRow, rows: Sequence[NodeRow], what: str, value: Callable[[NodeRow], str], *, left_out: bool
) -> NetboxConflict:
    shown = row.serial if what == "serial" else value(row)
    others = ", ".join(_named(other) for other in rows if other is not row and value(other) == value(row))
    end = "" if left_out else f": {what} is not taken over"
    return NetboxConflict(
        subject=row.name,
        kind=NetboxConflictKind.DUPLICATE,
        text=f"has the same {what} {shown} as {others}{end}",
        path=row.path,
        left_out=left_out,
    )


def _named(row: NodeRow) -> str:
    return row.name or f"device {row.device}"


@dataclass(frozen=True, slots=True, kw_only=True)
class InterfaceAddress:
    """One line of the IP plan: `network.addresses` of the site."""

    node: str
    interface: str
    address: str
    mac: Mac | None


def address_plan(names: Mapping[int, str], ports: Ports) -> Iterator[InterfaceAddress]:
    """Yield the addresses of the nodes' own interfaces. `names`: the nodes by the ids of their devices."""
    for id_, addresses in ports.addresses.items():
        port = ports.interfaces.get(id_)
        if port is None or port.mgmt_only or port.device not in names:
            continue
        for one in addresses[:1]:
            yield InterfaceAddress(node=names[port.device], interface=port.name, address=one.address, mac=port.mac)
