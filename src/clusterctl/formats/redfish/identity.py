"""Which machine a BMC is in, from as few resources as possible: a sweep asks hundreds, and each request takes seconds.

`next_path` returns what to read next, `read_identity` what is known by then. Source: DMTF DSP2046 (ComputerSystem,
Manager, Assembly).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, TypeVar

from clusterctl.fleet.bmc.observation import Greeting, Identity
from clusterctl.fleet.errors import ClusterctlError
from clusterctl.fleet.node import Mac, Serial
from clusterctl.formats.identifiers import read_mac
from clusterctl.formats.redfish.evidence import simulated
from clusterctl.formats.redfish.machine import make_of, serial_of
from clusterctl.formats.redfish.system import serial_like
from clusterctl.formats.redfish.tree import ROOT, Answers, NotYetReadError, RedfishTree, Resource, Unreadable, expansion

T = TypeVar("T")
_NO_UUID = re.compile(r"0{8}-(?:0{4}-){3}0{12}|f{8}-(?:f{4}-){3}f{12}|03000200-0400-0500-0006-000700080009")
_MAX_WORDS = 100


def or_none(read: Callable[[], T]) -> T | None:
    """Return what `read` returns; None where the BMC's answer has another form than it should."""
    try:
        return read()
    except ClusterctlError:
        return None


def words(resource: Resource | None, *keys: str) -> str:
    """Return a text, printable and short, for terminals and sheets; empty where absent."""
    if resource is None:
        return ""
    return printable(or_none(lambda: resource.text(*keys)) or "")


def printable(text: str) -> str:
    """Return the text without control characters, and not too long."""
    return "".join(sign for sign in text if sign.isprintable())[:_MAX_WORDS].strip()


def _serial_or_none(text: str | None) -> str:
    """Return the text where it can be a serial number, else empty."""
    return text if text and serial_like(text) else ""


def uuid(resource: Resource | None) -> str:
    """Return it in lower case; empty for a default of boards without a value of their own."""
    found = words(resource, "UUID").lower()
    return "" if _NO_UUID.fullmatch(found) else found


def mac(text: str) -> Mac | None:
    try:
        return read_mac(text)
    except ValueError:
        return None


def link(resource: Resource | None, *keys: str) -> str | None:
    return or_none(lambda: resource.link(*keys)) if resource is not None else None


def links(resource: Resource | None, *keys: str) -> list[str]:
    found = or_none(lambda: resource.references(*keys)) if resource is not None else None
    return list(dict.fromkeys(found or ()))


def read(answers: Answers, path: str | None) -> Resource | None:
    """Return what was read of a path; None where it was not, or could not be."""
    found = answers.get(path) if path is not None else None
    return Resource(path or "", found) if isinstance(found, Mapping) else None


_VENDORS = {
    "ami": "AMI",
    "asrockrack": "ASRockRack",
    "dell": "Dell",
    "gigabyte": "Gigabyte",
    "hp": "HPE",
    "hpe": "HPE",
    "lenovo": "Lenovo",
    "nvidia": "NVIDIA",
    "openbmc": "OpenBMC",
    "supermicro": "Supermicro",
}
"""The first word of the reported vendor, or the name of an `Oem` object → the vendor as we write it."""


def is_service_root(root: Mapping[str, Any]) -> bool:
    """Return whether JSON that came back for `/redfish/v1/` is a Redfish service's."""
    kind = root.get("@odata.type")
    return isinstance(root.get("RedfishVersion"), str) or (isinstance(kind, str) and kind.startswith("#ServiceRoot."))


def read_greeting(root: Mapping[str, Any]) -> Greeting:
    """Return the field; a field of a wrong type counts as absent."""
    resource = Resource(ROOT, root)
    return Greeting(
        kind=_kind_of_root(resource),
        vendor=_vendor(resource),
        product=words(resource, "Product"),
        redfish_version=words(resource, "RedfishVersion"),
        uuid=uuid(resource),
        serial=_serial_or_none(words(resource, "Oem", "Dell", "ServiceTag")),
        bmc_mac=mac(words(resource, "Oem", "Dell", "ManagerMACAddress")),
        simulated=simulated(root),
    )


_DPUS = ("bluefield", "bmcmezz")
"""In the product of NVIDIA's DPUs, lower case: `BlueField-3 DPU`, `Nvidia-BMCMezz`."""
_SHELVES = ("lite-on", "liteon")
"""How vendors begin that sell power shelves and no servers, lower case."""
_SHELF_MAKERS = (*_SHELVES, "delta")
"""How makers of chassis begin that are power shelves where the BMC lists neither a System nor a fabric, lower case."""
_SWITCH, _SHELF = "mgx_nvswitch", "powershelf"
"""In the ids of chassis: of NVLink switch trays, and of power shelves."""
_BOTH = "NVIDIA"
"""A vendor of servers and of switch trays: a tray's System has model, serial and boot order, too (N5700_LD)."""
_NO_NVIDIA = frozenset({"Dell", "HPE", "Lenovo", "Supermicro"})
"""Vendors with BMCs in servers only: their chassis are not read for that."""


def _kind_of_root(root: Resource) -> str:
    """Return DPU or power shelf where the service root is enough for that."""
    vendor, product = words(root, "Vendor").lower(), words(root, "Product").lower()
    if any(name in product for name in _DPUS):
        return "DPU"
    return "power shelf" if vendor.startswith(_SHELVES) else ""


def device_kind(answers: Answers) -> str:
    """Return what a BMC belongs to that is in no machine: DPU, switch, power shelf, enclosure; empty: it is in one."""
    root = read(answers, ROOT)
    if root is None:
        return ""
    system = _host(answers, root)
    dpu = "DPU" if system is not None and _is_dpu(system) else ""
    return _kind_of_root(root) or dpu or _kind_of_chassis(answers, root) or _kind_without_system(answers, root)


def _kind_of_chassis(answers: Answers, root: Resource) -> str:
    ids = [path.rsplit("/", 1)[-1].lower() for path in links(read(answers, link(root, "Chassis")), "Members")]
    if any(name.startswith(_SWITCH) for name in ids):
        return "switch"
    return "power shelf" if any(_SHELF in name for name in ids) else ""


def _kind_without_system(answers: Answers, root: Resource) -> str:
    """Return what a BMC belongs to that is known to list no system."""
    systems = link(root, "Systems")
    if systems is not None and (systems not in answers or _system_paths(answers, root)):
        return ""
    first = _first_chassis(answers, root)
    if "PowerEquipment" in root.body or words(first, "ChassisType") == "Shelf":
        return "power shelf"
    if "Fabrics" in root.body:
        return "switch"
    if words(first, "Manufacturer").lower().startswith(_SHELF_MAKERS):
        return "power shelf"
    return "enclosure controller" if systems is None and _manages_an_enclosure(answers, root) else ""


def _first_chassis(answers: Answers, root: Resource) -> Resource | None:
    return read(answers, next(iter(links(read(answers, link(root, "Chassis")), "Members")), None))


def _manages_an_enclosure(answers: Answers, root: Resource) -> bool:
    """Return True where a manager calls itself that of an enclosure: of a chassis of blades, or of a switch blade."""
    managers = (read(answers, path) for path in links(read(answers, link(root, "Managers")), "Members"))
    return any(one is not None and words(one, "ManagerType") == "EnclosureManager" for one in managers)


def _is_dpu(system: Resource) -> bool:
    names = (system.id, words(system, "Model"), words(system, "SystemType"))
    return names[2] == "DPU" or any(name in text.lower() for name in _DPUS for text in names[:2])


def _next_of_kind(answers: Answers, root: Resource) -> str | None:
    """Return the list of chassis where neither vendor nor system shows that it is in a server; then the first chassis
    where there is no system: a power shelf may be one only by its type.
    """
    system = _host(answers, root)
    known = system is not None and _is_host(system) and bool(_serial(RedfishTree(answers), system))
    if _vendor(root) in _NO_NVIDIA or (known and _vendor(root) != _BOTH):
        return None
    listed = link(root, "Chassis")
    systems = link(root, "Systems")
    none = systems is None or (systems in answers and not _system_paths(answers, root))
    if none and (chassis := links(read(answers, listed), "Members")):
        return chassis[0]
    return listed


def known_vendor(text: str) -> str:
    """Return the vendor's short name (`Dell Inc.` → `Dell`); empty for an unknown vendor."""
    return _VENDORS.get(text.strip().split(" ", 1)[0].lower(), "")


def _vendor(root: Resource) -> str:
    """Return the reported vendor, in our spelling where we have one; else by the vendor's own part of the root."""
    reported = words(root, "Vendor")
    oem = root.body.get("Oem")
    names = (reported, *oem) if isinstance(oem, Mapping) else (reported,)
    return next((known for name in names if (known := known_vendor(name))), reported)


def next_interface(answers: Answers, manager: Resource, address: str) -> str | None:
    """Return what to read next: all interfaces in one request where the BMC can, else one by one up to `address`."""
    path = link(manager, "EthernetInterfaces")
    if path is None or _with_address(answers, manager, address):
        return None
    whole = _expanded(answers, path)
    if whole is not None and whole not in answers:
        return whole
    if path not in answers and not _interfaces(answers, manager):
        return path
    return next((member for member in links(read(answers, path), "Members") if member not in answers), None)


def port_mac(answers: Answers, manager: Resource | None, address: str) -> Mac | None:
    """Return the MAC address of the interface with `address`; else of the first that is up and leaves the machine."""
    if manager is None:
        return None
    up = [item for item in _interfaces(answers, manager) if not _inside(item)]
    up.sort(key=lambda item: words(item, "Status", "State") == "Disabled")
    found = _with_address(answers, manager, address) or up
    return next((ours for item in found if (ours := _mac(item)) is not None), None)


def _with_address(answers: Answers, manager: Resource, address: str) -> list[Resource]:
    return [item for item in _interfaces(answers, manager) if address in _addresses(item)]


def _interfaces(answers: Answers, manager: Resource) -> list[Resource]:
    """Return the interfaces that were read, in the collection or one by one."""
    path = link(manager, "EthernetInterfaces")
    if path is None:
        return []
    whole = read(answers, _expanded(answers, path))
    inside = (or_none(lambda: whole.each("Members")) or ()) if whole is not None else ()
    found = [item for item in inside if _mac(item) is not None]
    return found or [item for member in links(read(answers, path), "Members") if (item := read(answers, member))]


def _expanded(answers: Answers, path: str) -> str | None:
    """Return the path of the collection with its members in it, where the BMC offers that and has not refused it."""
    query = expansion(answers, path)
    return path + query if query and not isinstance(answers.get(path + query), Unreadable) else None


def _mac(interface: Resource) -> Mac | None:
    return mac(words(interface, "MACAddress")) or mac(words(interface, "PermanentMACAddress"))


def _addresses(interface: Resource) -> list[str]:
    kinds = ("IPv4Addresses", "IPv6Addresses")
    items = [item for kind in kinds for item in or_none(partial(interface.each, kind)) or ()]
    return [words(item, "Address").lower() for item in items]


def _inside(interface: Resource) -> bool:
    """Return True for a link between BMC and host: it has a link-local address only."""
    found = [address for address in _addresses(interface) if "." in address]
    return bool(found) and all(address.startswith("169.254.") for address in found)


_SERIAL_COST = 2
"""Requests that are spent at most, at a time, on a serial that the system does not report."""
_BOARDS = ("HGX",)
"""How systems begin that are a board inside the machine and not the host."""


def next_path(answers: Answers, address: str) -> str | None:
    """Return what to read next to know more; None where all is known that can be. `address`: the requested one."""
    root = read(answers, ROOT)
    if root is None:
        return None
    if device_kind(answers):
        return None
    wanted = (
        _next_of_system(answers, root),
        _next_of_serial(answers, root),
        _next_of_kind(answers, root),
        _manager_path(answers, root),
    )
    ahead = next((path for path in wanted if path is not None and path not in answers), None)
    manager = _manager(answers, root)
    if ahead is not None or manager is None or read_greeting(root.body).bmc_mac is not None:
        return ahead
    return next_interface(answers, manager, address)


def _manufacturer_and_model(answers: Answers, system: Resource | None) -> tuple[str, str]:
    """Return manufacturer and model by the System, else by the resources that `machine` reads for them."""
    manufacturer, model = words(system, "Manufacturer"), words(system, "Model")
    if system is None or (manufacturer and model):
        return manufacturer, model
    further = _make(RedfishTree(answers), system)
    return manufacturer or further[0], model or further[1]


def read_identity(answers: Answers, address: str) -> Identity:
    """Return what is known so far; `problems` has what could not be read or is missing."""
    problems = [f"{path}: {found.reason}" for path, found in answers.items() if isinstance(found, Unreadable)]
    root = read(answers, ROOT)
    if root is None:
        return Identity(problems=tuple(problems))
    system, manager = _host(answers, root), _manager(answers, root)
    serial = _serial(RedfishTree(answers), system) if system is not None else ""
    if system is None:
        problems.append("the BMC lists no system that can be read")
    elif not serial:
        problems.append(f"{system.path}: the BMC does not report the machine's serial")
    manufacturer, model = _manufacturer_and_model(answers, system)
    return Identity(
        manufacturer=manufacturer,
        model=model,
        serial=Serial(serial) if serial else None,
        sku=words(system, "SKU"),
        uuid=uuid(system),
        bios=words(system, "BiosVersion"),
        bmc_firmware=words(manager, "FirmwareVersion"),
        bmc_mac=read_greeting(root.body).bmc_mac or port_mac(answers, manager, address),
        problems=tuple(problems),
        kind=device_kind(answers),
    )


def _next_of_system(answers: Answers, root: Resource) -> str | None:
    """Return the next path: Systems, then its members until one is the host."""
    systems = link(root, "Systems")
    if systems is None or systems not in answers:
        return systems
    paths = _system_paths(answers, root)
    if any(_is_host(found) for path in paths if (found := read(answers, path))):
        return None
    return next((path for path in paths if path not in answers), None)


def _next_of_serial(answers: Answers, root: Resource) -> str | None:
    """Return the next resource that may give the serial of a host that does not know it."""
    system = _host(answers, root)
    tree = RedfishTree(answers)
    if system is not None:
        _serial(tree, system)
    return next(iter(tree.wanted), None) if len(tree.wanted) <= _SERIAL_COST else None


def _serial(tree: RedfishTree, system: Resource) -> str:
    """Return the serial; empty where it is unknown; `tree.wanted` then has what may give it."""
    try:
        return _serial_or_none(or_none(lambda: serial_of(tree, system)))
    except NotYetReadError:
        return ""


def _make(tree: RedfishTree, system: Resource) -> tuple[str, str]:
    """Return manufacturer and model from the resources of the serial, for a system without its own (GB200)."""
    try:
        maker, model = or_none(lambda: make_of(tree, system)) or ("", "")
    except NotYetReadError:
        return "", ""
    return printable(maker), printable(model)


def _host(answers: Answers, root: Resource) -> Resource | None:
    """Return the system that boots an OS, of those that were read."""
    return max(
        (found for path in _system_paths(answers, root) if (found := read(answers, path))), key=_is_host, default=None
    )


def _is_host(system: Resource) -> bool:
    return system.body.get("BiosVersion") is not None or system.body.get("Boot") is not None


def _system_paths(answers: Answers, root: Resource) -> list[str]:
    """Return the systems' paths, those of boards inside the machine last."""
    paths = links(read(answers, link(root, "Systems")), "Members")
    return sorted(paths, key=lambda path: path.rsplit("/", 1)[-1].startswith(_BOARDS))


def _manager(answers: Answers, root: Resource) -> Resource | None:
    path = _manager_path(answers, root)
    return read(answers, path) if path != link(root, "Managers") else None


def _manager_path(answers: Answers, root: Resource) -> str | None:
    """Return the host's manager, else the first of all; the collection's path while its members are not known."""
    linked = links(_host(answers, root), "Links", "ManagedBy")
    if linked:
        return linked[0]
    managers = link(root, "Managers")
    return next(iter(links(read(answers, managers), "Members")), None) if managers in answers else managers
