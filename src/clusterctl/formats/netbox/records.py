"""Lists of NetBox's REST API → records. An object that is not understood becomes a conflict, and stops no other.

The fields that a reader needs are listed here: the client asks for these alone (`fields=`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from ipaddress import ip_interface
from typing import Any, TypeVar

from clusterctl.fleet.errors import ParseError
from clusterctl.fleet.node import Mac
from clusterctl.formats.identifiers import read_mac
from clusterctl.formats.netbox.values import choice, flag, mapping, number, objects, related, scalars, text, whole

T = TypeVar("T")
DEVICE_FIELDS = ",".join(
    (
        *("id", "name", "serial", "status", "role", "device_type", "rack", "position", "oob_ip"),
        *("primary_ip4", "primary_ip6", "tags", "custom_fields", "last_updated"),
    )
)
INTERFACE_FIELDS = "id,device,name,mgmt_only,mac_address"
ADDRESS_FIELDS = "id,address,status,assigned_object_type,assigned_object_id"
CABLE_FIELDS = "id,type,a_terminations,b_terminations,status,label,length,length_unit"
ENDPOINT_FIELDS = "id,device,name,mgmt_only,connected_endpoints,connected_endpoints_type,connected_endpoints_reachable"
INTERFACE = "dcim.interface"
PANEL_PORTS = frozenset({"dcim.frontport", "dcim.rearport"})
_METRES = {"km": 1000.0, "m": 1.0, "cm": 0.01, "mi": 1609.344, "ft": 0.3048, "in": 0.0254}
"""NetBox's units of length (CableLengthUnitChoices) in metres."""


class NetboxConflictKind(StrEnum):
    """Why something of NetBox is not taken over, or only in part."""

    ADDRESS = "no usable BMC address"
    BREAKOUT = "breakout cable"
    CABLE = "cable"
    DECOMMISSIONED = "decommissioned"
    DUPLICATE = "duplicate"
    MAC = "MAC address"
    MALFORMED = "not understood"
    NAME = "name"
    PANEL = "patch panel"
    PLACE = "place"
    PORT = "port"
    STATUS = "status"


@dataclass(frozen=True, slots=True, kw_only=True)
class NetboxConflict:
    """What an operator has to look at in NetBox.

    subject   the device, or device and port, or cable
    path      the page of the object below NetBox's URL: `dcim/devices/5/`
    left_out  the subject is not taken over; else it is, without the field that the text names
    """

    subject: str
    kind: NetboxConflictKind
    text: str
    path: str
    left_out: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class NetboxDevice:
    """One device. Addresses have a prefix, as NetBox writes them; `rack` and `unit` are empty where unknown."""

    id: int
    name: str
    serial: str = ""
    status: str = ""
    role: str = ""
    device_type: str = ""
    rack: str = ""
    unit: float | None = None
    oob: str = ""
    primary4: str = ""
    primary6: str = ""
    tags: frozenset[str] = frozenset()
    custom: Mapping[str, str] = field(default_factory=dict)
    updated: str = ""

    @property
    def path(self) -> str:
        return f"dcim/devices/{self.id}/"

    @property
    def label(self) -> str:
        """Return the name, or the id of a device without one."""
        return self.name or f"device {self.id}"


@dataclass(frozen=True, slots=True, kw_only=True)
class NetboxInterface:
    """One interface. `mac` is None where NetBox has none."""

    id: int
    device: int
    name: str
    mgmt_only: bool
    mac: Mac | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class NetboxAddress:
    """One IP address with its prefix, and the interface that has it."""

    id: int
    address: str
    status: str
    interface: int


@dataclass(frozen=True, slots=True, kw_only=True)
class End:
    """One termination of a cable. `kind` is NetBox's object type; `device` is 0 for ends on no device."""

    kind: str
    id: int
    device: int = 0
    name: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class NetboxCable:
    """One cable with the terminations of both ends."""

    id: int
    status: str
    label: str
    kind: str
    length_m: float | None
    a: tuple[End, ...]
    b: tuple[End, ...]

    @property
    def path(self) -> str:
        return f"dcim/cables/{self.id}/"

    @property
    def title(self) -> str:
        return f"cable {self.label}" if self.label else f"cable {self.id}"


@dataclass(frozen=True, slots=True, kw_only=True)
class FarEnd:
    """The far ends of the whole path that begins at an interface. `reachable`: each cable on it is connected."""

    id: int
    ends: tuple[End, ...]
    reachable: bool


def read_list(
    items: Iterable[Any], reader: Callable[[Mapping[str, Any]], T], what: str, page: str
) -> tuple[list[T], list[NetboxConflict]]:
    """Return the records of a list, and a conflict for each object that was not understood.

    `what` is the kind of the objects, `page` their path: `device`, `dcim/devices`.
    """
    found: list[T] = []
    conflicts: list[NetboxConflict] = []
    for number_, item in enumerate(items, start=1):
        try:
            found.append(reader(mapping(item, what)))
        except ParseError as error:
            subject, path = _identity(item, what, page, number_)
            why = f"not understood: {error.message}"
            conflicts.append(NetboxConflict(subject=subject, kind=NetboxConflictKind.MALFORMED, text=why, path=path))
    return found, conflicts


def _identity(item: Any, what: str, page: str, position: int) -> tuple[str, str]:
    """Return name and path of an object that was not understood, as far as it has an id."""
    try:
        id_ = whole(item)
    except (ParseError, AttributeError):
        return f"{what} {position} of the list", f"{page}/"
    return f"{what} {id_}", f"{page}/{id_}/"


def read_device(item: Mapping[str, Any]) -> NetboxDevice:
    """Return a device of `dcim/devices/`."""
    role, kind, rack = related(item, "role"), related(item, "device_type"), related(item, "rack")
    return NetboxDevice(
        id=whole(item),
        name=text(item, "name"),
        serial=text(item, "serial"),
        status=choice(item, "status"),
        role=role.slug if role else "",
        device_type=kind.slug if kind else "",
        rack=rack.name if rack else "",
        unit=number(item, "position"),
        oob=_address_of(item, "oob_ip"),
        primary4=_address_of(item, "primary_ip4"),
        primary6=_address_of(item, "primary_ip6"),
        tags=frozenset(text(tag, "slug") for tag in objects(item, "tags")),
        custom=scalars(item, "custom_fields"),
        updated=text(item, "last_updated"),
    )


def _address_of(item: Mapping[str, Any], name: str) -> str:
    found = related(item, name)
    return _with_prefix(found.address) if found and found.address else ""


def _with_prefix(address: str) -> str:
    try:
        return str(ip_interface(address))
    except ValueError:
        raise ParseError("address is no IP address") from None


def read_interface(item: Mapping[str, Any]) -> NetboxInterface:
    """Return an interface of `dcim/interfaces/`."""
    mac = text(item, "mac_address")
    try:
        known = read_mac(mac) if mac else None
    except ValueError:
        raise ParseError("mac_address is no MAC address") from None
    return NetboxInterface(
        id=whole(item),
        device=whole(mapping(item.get("device"), "device")),
        name=text(item, "name"),
        mgmt_only=flag(item, "mgmt_only"),
        mac=known,
    )


def read_address(item: Mapping[str, Any]) -> NetboxAddress:
    """Return an address of `ipam/ip-addresses/`; `interface` is 0 where it is not assigned to one."""
    on_interface = text(item, "assigned_object_type") == INTERFACE
    return NetboxAddress(
        id=whole(item),
        address=_with_prefix(text(item, "address")),
        status=choice(item, "status"),
        interface=whole(item, "assigned_object_id") if on_interface else 0,
    )


def read_cable(item: Mapping[str, Any]) -> NetboxCable:
    """Return a cable of `dcim/cables/`."""
    length, unit = number(item, "length"), choice(item, "length_unit")
    metres = None if length is None or unit not in _METRES else round(length * _METRES[unit], 3)
    return NetboxCable(
        id=whole(item),
        status=choice(item, "status"),
        label=text(item, "label"),
        kind=choice(item, "type"),
        length_m=metres if metres is not None and 0 < metres < 1000 else None,
        a=tuple(map(_termination, objects(item, "a_terminations"))),
        b=tuple(map(_termination, objects(item, "b_terminations"))),
    )


def _termination(item: Mapping[str, Any]) -> End:
    """Return an end: `{"object_type", "object_id", "object"}`."""
    return _end(text(item, "object_type"), whole(item, "object_id"), mapping(item.get("object"), "object"))


def _end(kind: str, id_: int, item: Mapping[str, Any]) -> End:
    device = item.get("device")
    name = text(item, "name")
    return End(kind=kind, id=id_, device=whole(device) if isinstance(device, dict) else 0, name=name)


def read_far_end(item: Mapping[str, Any]) -> FarEnd:
    """Return the far ends of an interface of `dcim/interfaces/`, none where its path ends in a panel."""
    kind = text(item, "connected_endpoints_type")
    ends = tuple(_end(kind, whole(one), one) for one in objects(item, "connected_endpoints"))
    return FarEnd(id=whole(item), ends=ends, reachable=flag(item, "connected_endpoints_reachable"))
