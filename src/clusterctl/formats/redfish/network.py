"""Ethernet ports and InfiniBand adapters of the host.

Ethernet ports are the union of the system's EthernetInterfaces and the adapters' device functions: some vendors list a
card in one of them only. Health is not looked at: HPE and Dell leave it null on Mellanox ports. A function that speaks
InfiniBand has a MAC too (for IPoIB), which is no Ethernet port.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import chain

from clusterctl.fleet.errors import ParseError
from clusterctl.fleet.natural_order import natural_key
from clusterctl.fleet.node import Guid, Hca, Mac, Nic
from clusterctl.formats.redfish.system import chassis, host_system, serial_number
from clusterctl.formats.redfish.tree import Resource, Tree

# NVIDIA part numbers MCX<generation>5…: the VPI and InfiniBand cards of ConnectX-4 to -8 (1, 2, 3 there: Ethernet).
_VPI_CARD = re.compile(r"\bMCX[4-8]5\d|\bConnectX-\d+(?! *(Dx|Lx|EN|Ethernet))\b|InfiniBand", re.IGNORECASE)
_NOT_HEX = re.compile(r"[^0-9a-f]")
_MAC_SEPARATORS = re.compile(r"[:.\-]")


@dataclass(frozen=True, slots=True)
class _Function:
    """One device function of an adapter: number `rank` of its `siblings` functions, counted from 1.

    Ports are not asked for: an InfiniBand adapter has one function for each port, in the ports' order.
    """

    adapter: Resource
    resource: Resource
    siblings: int
    rank: int

    @property
    def model(self) -> str:
        dell = (self.resource.text("Oem", "Dell", name, "ProductName") for name in ("DellInfiniBand", "DellNIC"))
        products = (product.split(" - ")[0] for product in dell if product)
        return self.adapter.text("Model") or next(products, "") or self.adapter.text("PartNumber")

    @property
    def speaks_infiniband(self) -> bool:
        kind = self.resource.text("NetDevFuncType")
        silent = not kind and any(self.resource.has(*keys) for keys in (("InfiniBand",), _DELL_INFINIBAND))
        return kind == "InfiniBand" or silent

    @property
    def capabilities(self) -> tuple[str, ...]:
        """What it can be set to; all that the DGX's BMC tells of a card."""
        return self.resource.texts("NetDevFuncCapabilities")

    @property
    def can_infiniband(self) -> bool:
        capable = "InfiniBand" in self.capabilities
        return self.speaks_infiniband or capable or bool(_VPI_CARD.search(self.model))

    @property
    def mac(self) -> Mac | None:
        return _mac(self.resource, "Ethernet", "MACAddress") or _mac(self.resource, "Ethernet", "PermanentMACAddress")


_DELL_INFINIBAND = ("Oem", "Dell", "DellInfiniBand")
_GUID_FIELDS = (
    ("InfiniBand", "PortGUID"),
    ("InfiniBand", "PermanentPortGUID"),
    ("InfiniBand", "NodeGUID"),
    ("InfiniBand", "PermanentNodeGUID"),
    (*_DELL_INFINIBAND, "PermanentPortGUID"),
    (*_DELL_INFINIBAND, "NodeGUID"),
)


def hcas(tree: Tree) -> tuple[Hca, ...]:
    """Every function that speaks InfiniBand, or that sits on a card which can."""
    functions = _functions(tree)
    for function in functions:
        unclear = not function.model and _maker_unclear(function.adapter) and not function.capabilities
        if not function.speaks_infiniband and unclear:
            raise ParseError("nothing tells what adapter this is", where=function.adapter.where("Model"))
    found = [_hca(function) for function in functions if function.can_infiniband]
    return tuple(sorted(found, key=lambda hca: natural_key(hca.slot)))


def nics(tree: Tree) -> tuple[Nic, ...]:
    """Every Ethernet port of the host once, in the BMC's order; `ParseError` where it lists none.

    Where one of the two sources is missing altogether, the other tells, and `Tree.notes` says so.
    """
    interfaces, functions = _sources(tree)
    infiniband = {function.mac for function in functions if function.speaks_infiniband}
    netboots = {f.mac for f in functions if f.resource.text("BootMode") == "PXE"}
    found: dict[Mac, Nic] = {}
    for interface in interfaces:
        mac = _told_mac(interface, ("MACAddress",), ("PermanentMACAddress",))
        if mac and mac not in infiniband:
            boots = mac in netboots or bool(interface.text("UefiDevicePath"))
            found.setdefault(mac, Nic(interface.id, mac, boots))
    for function in functions:
        mac = None if function.speaks_infiniband else _function_mac(function)
        if mac and mac not in infiniband:
            found.setdefault(mac, Nic(_slot(function), mac, mac in netboots))
    if not found:
        raise ParseError("no Ethernet port of the host is listed", where=host_system(tree).where("EthernetInterfaces"))
    return tuple(found.values())


def _sources(tree: Tree) -> tuple[list[Resource], list[_Function]]:
    """The system's interfaces and the adapters' functions, either of them empty where the BMC has no such list."""
    host, units = host_system(tree), chassis(tree)
    interfaces, adapters = host.has("EthernetInterfaces"), any(one.has("NetworkAdapters") for one in units)
    if not adapters:
        tree.notes.append("nics: no chassis lists its network adapters: ports that only they tell are not seen")
    if not interfaces:
        tree.notes.append(f"nics: {host.where('EthernetInterfaces')}: the link is missing")
    return _interfaces(tree) if interfaces else [], _functions(tree) if adapters else []


def _interfaces(tree: Tree) -> list[Resource]:
    """The host's interfaces; not the virtual one that leads to the BMC itself."""
    return [
        item
        for item in tree.members(host_system(tree), "EthernetInterfaces")
        if not item.absent and not item.has("Links", "HostInterface") and item.id != "ToManager"
    ]


def _functions(tree: Tree) -> list[_Function]:
    listing = [one for one in chassis(tree) if one.has("NetworkAdapters")]
    if not listing:
        raise ParseError("no chassis lists its network adapters", where="/redfish/v1/Chassis NetworkAdapters")
    listed = chain.from_iterable(tree.gather(listing, "NetworkAdapters"))
    adapters = [item for item in listed if not item.absent]
    functions = tree.gather(adapters, "NetworkDeviceFunctions")
    return [
        _Function(adapter, item, len(siblings), rank)
        for adapter, siblings in zip(adapters, functions, strict=True)
        for rank, item in enumerate(sorted(siblings, key=lambda one: natural_key(one.id)), start=1)
        if not item.absent
    ]


def _maker_unclear(adapter: Resource) -> bool:
    """True where the maker is not told, or makes InfiniBand adapters."""
    maker = adapter.text("Manufacturer").lower()
    return not maker or "mellanox" in maker or "mlnx" in maker or "nvidia" in maker


def _hca(function: _Function) -> Hca:
    adapter = function.adapter
    controllers = adapter.each("Controllers")
    told = (_guid(function.resource, keys) for keys in _GUID_FIELDS)
    return Hca(
        slot=_slot(function),
        model=function.model,
        serial=serial_number(adapter),
        guid=next((guid for guid in told if guid), None),
        firmware=controllers[0].text("FirmwarePackageVersion") if controllers else "",
        port=function.rank,
    )


def _slot(function: _Function) -> str:
    """What is printed beside the slot where the BMC tells it, else its own ids."""
    controllers = function.adapter.each("Controllers")
    label = controllers[0].text("Location", "PartLocation", "ServiceLabel") if controllers else ""
    adapter, own = label or function.adapter.id, function.resource.id
    if own.startswith(adapter):
        return own
    return f"{adapter} function {own}" if function.siblings > 1 else adapter


def _told_mac(resource: Resource, *fields: tuple[str, ...]) -> Mac | None:
    """The first that is told; a port in use without any is a `ParseError`, so that it is not lost silently."""
    for keys in fields:
        mac = _mac(resource, *keys)
        if mac:
            return mac
    if resource.text("Status", "State") == "Disabled" or resource.flag("InterfaceEnabled") is False:
        return None
    raise ParseError("the interface has no MAC address", where=resource.where(*fields[0]))


def _function_mac(function: _Function) -> Mac | None:
    told = function.mac
    enabled = function.resource.flag("DeviceEnabled") is not False
    if told is None and enabled and function.resource.text("NetDevFuncType") == "Ethernet":
        raise ParseError("the Ethernet function has no MAC address", where=function.resource.where("Ethernet"))
    return told


def _mac(resource: Resource, *keys: str) -> Mac | None:
    """Lower case with colons; None where not told or all zero."""
    told = resource.text(*keys).lower()
    digits = _MAC_SEPARATORS.sub("", told)
    if not digits.strip("0"):
        return None
    if len(digits) != 12 or _NOT_HEX.search(digits):
        raise ParseError(f"{told!r} is no MAC address", where=resource.where(*keys))
    return Mac(":".join(digits[i : i + 2] for i in range(0, 12, 2)))


def _guid(resource: Resource, keys: tuple[str, ...]) -> Guid | None:
    """16 hex digits, from `88e9:a4ff:ff80:9da2`, `0x88e9…` or pairs; None where not told or all zero."""
    told = resource.text(*keys).lower()
    digits = _NOT_HEX.sub("", told.removeprefix("0x"))
    if not digits.strip("0"):
        return None
    if len(digits) != 16:
        raise ParseError(f"{told!r} is no GUID", where=resource.where(*keys))
    return Guid(digits)
