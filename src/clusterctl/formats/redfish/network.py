"""Ethernet ports and InfiniBand adapters of the host.

Ethernet ports are the union of the system's EthernetInterfaces and the adapters' device functions: some vendors list a
card in one of them only. Health is not looked at: HPE and Dell leave it null on Mellanox ports. A function of
InfiniBand has a MAC too (for IPoIB), which is no Ethernet port.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from functools import partial
from itertools import chain

from clusterctl.fleet.errors import ParseError
from clusterctl.fleet.natural_order import natural_key
from clusterctl.fleet.node import Guid, Hca, Mac, Nic
from clusterctl.formats.redfish.parts import by_slot
from clusterctl.formats.redfish.system import chassis, garbled, host_first, host_system, serial_number
from clusterctl.formats.redfish.tree import GarbledError, RedfishTree, Resource

# NVIDIA part numbers MCX<generation>5…: the VPI and InfiniBand cards of ConnectX-4 to -8 (1, 2, 3 there: Ethernet).
_VPI_CARD = re.compile(r"\bMCX[4-8]5\d|\bConnectX-\d+(?! *(Dx|Lx|EN|Ethernet))\b|InfiniBand", re.IGNORECASE)
_NOT_HEX = re.compile(r"[^0-9a-f]")
_MAC_SEPARATORS = re.compile(r"[:.\-]")


_CX_ID = re.compile(r"CX([4-9])", re.IGNORECASE)
"""`IO_Board_0_CX7_0`: ids of the adapters of a GB200 tray, with the models of the boards that they sit on."""


@dataclass(frozen=True, slots=True)
class _Function:
    """One device function or port of an adapter: number `rank` of its `siblings`, counted from 1.

    An InfiniBand adapter has one function for each port, in the ports' order. An adapter that lists neither is
    its own function. `pci_model`: the model by its PCI ids.
    """

    adapter: Resource
    resource: Resource
    siblings: int = 1
    rank: int = 1
    pci_model: str = ""

    @property
    def reported_model(self) -> str:
        dell = (self.resource.text("Oem", "Dell", name, "ProductName") for name in ("DellInfiniBand", "DellNIC"))
        products = (product.split(" - ")[0] for product in dell if product)
        names = (self.adapter.text("Model"), next(products, ""), self.adapter.text("PartNumber"))
        return next((text for text in names if text and not garbled(text)), "")

    @property
    def model(self) -> str:
        found = self.reported_model or self.pci_model
        chip = _CX_ID.search(self.adapter.id)
        return f"ConnectX-{chip[1]} {found}".strip() if chip and "connectx" not in found.casefold() else found

    @property
    def is_infiniband(self) -> bool:
        kinds = (self.resource.term(name) for name in _TECHNOLOGIES)
        kind = next((found for found in kinds if found), "")
        silent = not kind and any(self.resource.has(*keys) for keys in (("InfiniBand",), _DELL_INFINIBAND))
        return kind == "InfiniBand" or silent

    @property
    def has_ethernet(self) -> bool:
        """Whether the BMC calls it Ethernet, or does not report its kind and gives it a MAC address."""
        kinds = [kind for name in _TECHNOLOGIES if (kind := self.resource.term(name))]
        return "Ethernet" in kinds if kinds else self.mac is not None

    @property
    def capabilities(self) -> tuple[str, ...]:
        """The kinds that it can be set to; the DGX's BMC reports nothing else of a card."""
        found = self.resource.texts("NetDevFuncCapabilities")
        if "" in found:
            raise GarbledError("a kind is empty", where=self.resource.where("NetDevFuncCapabilities"))
        return found

    @property
    def can_infiniband(self) -> bool:
        if self.is_infiniband or not self.capabilities:
            return self.is_infiniband or bool(_VPI_CARD.search(self.model))
        return "InfiniBand" in self.capabilities

    @property
    def unclear(self) -> bool:
        """Whether the function may be one of an InfiniBand adapter, because the BMC does not report what it is."""
        known = self.is_infiniband or self.model or self.capabilities
        return not known and _maker_unclear(self.adapter)

    @property
    def mac(self) -> Mac | None:
        for name in ("MACAddress", "PermanentMACAddress"):
            if found := _mac(self.resource, "Ethernet", name):
                return found
        for keys in (("Ethernet", "AssociatedMACAddresses"), ("AssociatedNetworkAddresses",)):
            if ports := self.resource.texts(*keys):
                return _as_mac(ports[0], self.resource.where(*keys))
        return None

    @property
    def guid(self) -> Guid | None:
        guids = [_guid(self.resource.text(*keys), self.resource.where(*keys)) for keys in _GUID_FIELDS]
        for keys in _PORT_GUID_FIELDS:
            guids += [_guid(text, self.resource.where(*keys)) for text in self.resource.texts(*keys)]
        return next((guid for guid in guids if guid), None)


_FUNCTIONS = "NetworkDeviceFunctions"
_FIBRE_CHANNEL = ("FibreChannel", "FibreChannelOverEthernet")
_TECHNOLOGIES = ("NetDevFuncType", "PortProtocol", "LinkNetworkTechnology", "ActiveLinkTechnology")
_DELL_INFINIBAND = ("Oem", "Dell", "DellInfiniBand")
_GUID_FIELDS = (
    ("InfiniBand", "PortGUID"),
    ("InfiniBand", "PermanentPortGUID"),
    ("InfiniBand", "NodeGUID"),
    ("InfiniBand", "PermanentNodeGUID"),
    (*_DELL_INFINIBAND, "PermanentPortGUID"),
    (*_DELL_INFINIBAND, "NodeGUID"),
)
_PORT_GUID_FIELDS = (("InfiniBand", "AssociatedPortGUIDs"), ("InfiniBand", "AssociatedNodeGUIDs"))


def hcas(tree: RedfishTree) -> tuple[Hca, ...]:
    """Return every InfiniBand function, and every one on a card with an InfiniBand mode."""
    functions = _functions(tree)
    for function in functions:
        if function.unclear:
            tree.leave_out(ParseError("the kind of this adapter is unknown", where=function.adapter.where("Model")))
    capable = [function for function in functions if function.can_infiniband]
    found = tree.kept(capable, _hca)
    if not found and tree.incomplete():
        raise ParseError("no adapter is among what could be read", where="/redfish/v1/Chassis NetworkAdapters")
    return by_slot(found)


def ethernet_adapters(tree: RedfishTree) -> tuple[Hca, ...]:
    """Return every function of a card for Ethernet only: in a RoCE fabric such cards are the compute adapters.

    Storage functions (Fibre Channel, iSCSI) are left out. Empty where no chassis lists adapters.
    """
    if not any(one.has("NetworkAdapters") for one in chassis(tree)):
        return ()
    capable = [one for one in _functions(tree) if one.model and one.has_ethernet and not one.can_infiniband]
    return by_slot(tree.kept(capable, _hca))


def nics(tree: RedfishTree) -> tuple[Nic, ...]:
    """Return every Ethernet port of the host once, in the BMC's order; `ParseError` where it lists none.

    Where one of the two sources is missing, the other one decides, and `Tree.notes` has a note.
    """
    interfaces, functions = _sources(tree)
    infiniband = {tree.attempt(partial(_mac_of, one)) for one in functions if one.is_infiniband}
    netboots = {f.mac for f in functions if f.resource.text("BootMode") == "PXE"}
    found: dict[Mac, Nic] = {}
    for nic in chain(_of_interfaces(tree, interfaces, netboots), _of_functions(tree, functions, netboots)):
        if nic.mac not in infiniband:
            found.setdefault(nic.mac, nic)
    if not found:
        raise ParseError("no Ethernet port of the host is listed", where=host_system(tree).where("EthernetInterfaces"))
    return tuple(found.values())


def _of_interfaces(
    tree: RedfishTree, interfaces: Iterable[Resource], netboots: AbstractSet[Mac | None]
) -> Iterator[Nic]:
    for interface in interfaces:
        mac = tree.attempt(partial(_first_mac, interface, ("MACAddress",), ("PermanentMACAddress",)))
        if mac:
            boots = mac in netboots or bool(interface.text("UefiDevicePath"))
            yield Nic(interface.id, mac, boots, tree.attempt(partial(_link, interface)))


def _of_functions(
    tree: RedfishTree, functions: Iterable[_Function], netboots: AbstractSet[Mac | None]
) -> Iterator[Nic]:
    for function in functions:
        mac = None if function.is_infiniband else tree.attempt(partial(_function_mac, function))
        if mac:
            yield Nic(_slot(function), mac, mac in netboots, tree.attempt(partial(_link, function.resource)))


_LINKS = {"linkup": True, "up": True, "linkdown": False, "nolink": False, "down": False}
"""LinkStatus of EthernetInterface, Port and NetworkPort; others, such as `Training`, mean neither."""


def _link(port: Resource) -> bool | None:
    """Return whether the port has a link; None where the BMC does not report it, or the port does not operate."""
    status = port.text("LinkStatus").casefold()
    operates = port.term("Status", "State") in ("", "Enabled") and port.flag("InterfaceEnabled") is not False
    return _LINKS.get(status) if operates else None


def _sources(tree: RedfishTree) -> tuple[list[Resource], list[_Function]]:
    """Return the system's interfaces and the adapters' functions, either empty where the BMC has no such list."""
    host, units = host_system(tree), chassis(tree)
    interfaces, adapters = host.has("EthernetInterfaces"), any(one.has("NetworkAdapters") for one in units)
    if not adapters:
        tree.notes.append("nics: no chassis lists its network adapters: ports that only they list are missing")
    if not interfaces:
        tree.notes.append(f"nics: {host.where('EthernetInterfaces')}: the link is missing")
    return _interfaces(tree) if interfaces else [], _functions(tree) if adapters else []


def _interfaces(tree: RedfishTree) -> list[Resource]:
    """Return the hosts' interfaces, without the virtual one to the BMC itself."""
    listed = tree.present(host_first(tree), "EthernetInterfaces")
    return list(tree.kept(listed, _interface))


def _interface(item: Resource) -> Resource | None:
    """Return an interface that leads out of the machine."""
    item.text("UefiDevicePath")
    return None if item.has("Links", "HostInterface") or item.id == "ToManager" else item


def _functions(tree: RedfishTree) -> list[_Function]:
    """Return each function of each adapter once; where an adapter lists none, its ports are its functions."""
    adapters = _adapters(tree)
    listed = _function_lists(tree, adapters)
    models = _pci_models(tree, tree.kept(adapters, lambda one: None if _Function(one, one).reported_model else one))
    functions = [
        function
        for adapter in adapters
        for function in _of_adapter(adapter, listed.get(adapter.path, ()), models.get(adapter.path, ""))
    ]
    return list(tree.kept(functions, _present))


def _present(function: _Function) -> _Function | None:
    """Return a present function; `ParseError` where the fields of its kind are garbled."""
    resource = function.resource
    _ = (function.model, function.is_infiniband, function.capabilities, _maker_unclear(function.adapter))
    _ = (resource.text("BootMode"), resource.text("NetDevFuncType"), _slot(function))
    return None if resource.absent else function


def _adapters(tree: RedfishTree) -> list[Resource]:
    units = [one for one in chassis(tree) if one.has("NetworkAdapters")]
    if not units:
        raise ParseError("no chassis lists its network adapters", where="/redfish/v1/Chassis NetworkAdapters")
    return tree.present(units, "NetworkAdapters")


def _function_lists(tree: RedfishTree, adapters: Iterable[Resource]) -> dict[str, tuple[Resource, ...]]:
    """Return the functions, else the ports, that each adapter lists, by the adapter's path."""
    found: dict[str, tuple[Resource, ...]] = {}
    for name in (_FUNCTIONS, "Ports", "NetworkPorts"):
        silent = [one for one in adapters if not found.get(one.path) and one.has(name)]
        found |= dict(zip((one.path for one in silent), tree.readable_members(silent, name), strict=True))
    for adapter in adapters:
        if adapter.path not in found:
            tree.leave_out(ParseError("it lists neither functions nor ports", where=adapter.path))
    return found


def _of_adapter(adapter: Resource, listed: tuple[Resource, ...], pci_model: str) -> list[_Function]:
    """Return the functions of one adapter; the adapter itself where it lists none."""
    siblings = sorted(listed or (adapter,), key=lambda one: natural_key(one.id))
    return [_Function(adapter, item, len(siblings), rank, pci_model) for rank, item in enumerate(siblings, start=1)]


_PCI_MODELS = {
    "0x1013": "ConnectX-4",
    "0x1015": "ConnectX-4 Lx",
    "0x1017": "ConnectX-5",
    "0x1019": "ConnectX-5 Ex",
    "0x101b": "ConnectX-6",
    "0x101d": "ConnectX-6 Dx",
    "0x101f": "ConnectX-6 Lx",
    "0x1021": "ConnectX-7",
    "0x1023": "ConnectX-8",
    "0xa2d6": "BlueField-2",
    "0xa2dc": "BlueField-3",
}
"""Device ids of Mellanox (0x15b3) in the PCI ID database; a DGX H100 reports no more of its adapters."""


def _pci_models(tree: RedfishTree, adapters: Iterable[Resource]) -> dict[str, str]:
    """Return the models of adapters by path, from the ids of their PCIe functions."""
    linked = {adapter.path: path for adapter, paths in tree.kept(adapters, _devices) for path in paths}
    devices = tree.readable(linked.values())
    listing = [one for one in devices if one.has("PCIeFunctions")]
    functions = dict(zip((one.path for one in listing), tree.readable_members(listing, "PCIeFunctions"), strict=True))
    models = {path: next(filter(None, tree.kept(items, _pci_model)), "") for path, items in functions.items()}
    return {adapter: models.get(device, "") for adapter, device in linked.items()}


def _devices(adapter: Resource) -> tuple[Resource, list[str]]:
    """Return the adapter with the paths of its PCIe devices."""
    return adapter, [path for one in adapter.each("Controllers") for path in one.links("Links", "PCIeDevices")]


def _pci_model(function: Resource) -> str:
    mellanox = function.text("VendorId").lower() == "0x15b3"
    return _PCI_MODELS.get(function.text("DeviceId").lower(), "") if mellanox else ""


def _maker_unclear(adapter: Resource) -> bool:
    """Return whether the maker is unknown, or makes InfiniBand adapters."""
    maker = adapter.text("Manufacturer").lower()
    return not maker or "mellanox" in maker or "mlnx" in maker or "nvidia" in maker


def _hca(function: _Function) -> Hca:
    adapter = function.adapter
    controllers = adapter.each("Controllers")
    return Hca(
        slot=_slot(function),
        model=function.model,
        serial=serial_number(adapter),
        guid=function.guid,
        firmware=controllers[0].text("FirmwarePackageVersion") if controllers else "",
        port=function.rank,
    )


def _slot(function: _Function) -> str:
    """Return the label that is printed at the slot, else the BMC's ids."""
    controllers = function.adapter.each("Controllers")
    label = controllers[0].text("Location", "PartLocation", "ServiceLabel") if controllers else ""
    adapter, own = label or function.adapter.id, function.resource.id
    if function.siblings == 1 and "Ports/" in function.resource.path:
        return adapter
    if own.startswith(adapter):
        return own
    return f"{adapter} function {own}" if function.siblings > 1 else adapter


def _first_mac(resource: Resource, *fields: tuple[str, ...]) -> Mac | None:
    """Return the first reported MAC; `ParseError` for a port in use without any, so that it is not lost silently."""
    for keys in fields:
        mac = _mac(resource, *keys)
        if mac:
            return mac
    if resource.term("Status", "State") == "Disabled" or resource.flag("InterfaceEnabled") is False:
        return None
    raise ParseError("the interface has no MAC address", where=resource.where(*fields[0]))


def _mac_of(function: _Function) -> Mac | None:
    return function.mac


def _function_mac(function: _Function) -> Mac | None:
    """Return the MAC of an Ethernet function; None for a storage port, which may have one, too."""
    kind = function.resource.term("NetDevFuncType")
    if kind in _FIBRE_CHANNEL:
        return None
    mac = function.mac
    enabled = function.resource.flag("DeviceEnabled") is not False
    if mac is None and enabled and kind == "Ethernet":
        raise ParseError("the Ethernet function has no MAC address", where=function.resource.where("Ethernet"))
    return mac


def _mac(resource: Resource, *keys: str) -> Mac | None:
    return _as_mac(resource.text(*keys), resource.where(*keys))


def _as_mac(text: str, where: str) -> Mac | None:
    """Return the MAC in lower case with colons; None where absent or all zero."""
    digits = _MAC_SEPARATORS.sub("", text.lower())
    if not digits.strip("0"):
        return None
    if len(digits) != 12 or _NOT_HEX.search(digits):
        raise ParseError(f"{text!r} is no MAC address", where=where)
    return Mac(":".join(digits[i : i + 2] for i in range(0, 12, 2)))


def _guid(text: str, where: str) -> Guid | None:
    """Return 16 hex digits, from `88e9:a4ff:ff80:9da2`, `0x88e9…` or pairs; None where absent or all zero."""
    digits = _NOT_HEX.sub("", text.lower().removeprefix("0x"))
    if not digits.strip("0"):
        return None
    if len(digits) != 16:
        raise ParseError(f"{text.lower()!r} is no GUID", where=where)
    return Guid(digits)
