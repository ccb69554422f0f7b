"""Network adapters and Ethernet interfaces; recorded at Chassis/1/NetworkAdapters (1: an MCX75310AAS-NEAT, 9: an
AOC-STGS-i2T) and Systems/1/EthernetInterfaces, which has every port of both.

An InfiniBand card is reported as an Ethernet one: its device function has a MAC and no GUID.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from clusterctl_lab.emulators.redfish.resource import Resource, collection, head, ref
from clusterctl_lab.emulators.redfish.supermicro import identity, paths, pcie
from clusterctl_lab.emulators.redfish.view import View
from clusterctl_lab.machine import Machine

ONBOARD_MODEL = "AOC-STGS-i2T"
ONBOARD_FIRMWARE = "3.50 0x800016DC"
_INTERFACES = f"{paths.SYSTEM}/EthernetInterfaces"


@dataclass(frozen=True, slots=True)
class _Card:
    """A card with one port; `mac` in upper case; `device` is its PCIe device, empty for the one that is not listed."""

    number: int
    model: str
    serial: str
    firmware: str
    slot: str
    mac: str
    up: bool
    device: str = ""


def resources(view: View) -> Iterator[Resource]:
    cards = [*_hcas(view), _onboard(view)]
    adapters = [paths.adapter(card.number) for card in cards]
    yield collection(paths.ADAPTERS, "NetworkAdapterCollection", "Network Adapter Collection", adapters)
    interfaces = [f"{_INTERFACES}/{card.number}" for card in cards]
    manager = f"{_INTERFACES}/ToManager"
    name = "Ethernet Network Interface Collection"
    yield collection(_INTERFACES, "EthernetInterfaceCollection", name, [*interfaces, manager])
    yield _to_manager(manager, view.machine)
    for card in cards:
        yield _interface(card)
        yield from _adapter(card)


def _hcas(view: View) -> Iterator[_Card]:
    for hca in view.machine.hcas:
        number = paths.hca_number(hca)
        mac, up = identity.hca_mac(hca), view.running and hca.cable is not None
        slot = f"PCIe Slot {number} ({number})"
        yield _Card(number, hca.model, hca.serial, hca.firmware, slot, mac, up, pcie.nic(number))


def _onboard(view: View) -> _Card:
    machine = view.machine
    serial, mac = f"VA236S{machine.index:06d}", machine.boot_mac.upper()
    return _Card(paths.ONBOARD, ONBOARD_MODEL, serial, ONBOARD_FIRMWARE, "RISER 0 slot 1 (10)", mac, view.running)


def _adapter(card: _Card) -> Iterator[Resource]:
    path = paths.adapter(card.number)
    functions, ports = f"{path}/NetworkDeviceFunctions", f"{path}/NetworkPorts"
    yield {
        **head(path, "NetworkAdapter.v1_5_0.NetworkAdapter", "Network Adapter View"),
        "Manufacturer": "Supermicro",
        "Model": card.model,
        "SerialNumber": card.serial,
        "PartNumber": card.model,
        "NetworkPorts": ref(ports),
        "NetworkDeviceFunctions": ref(functions),
        "Controllers": [_controller(card, functions, ports)],
    }
    yield collection(functions, "NetworkDeviceFunctionCollection", "Network Device Functions", [f"{functions}/1"])
    yield {
        **head(f"{functions}/1", "NetworkDeviceFunction.v1_5_0.NetworkDeviceFunction", "Network Device Function View"),
        "NetDevFuncType": "Ethernet",
        "DeviceEnabled": True,
        "Ethernet": {"MACAddress": card.mac},
        "Links": {"PhysicalPortAssignment": ref(f"{ports}/1")},
    }
    yield collection(ports, "NetworkPortCollection", "Network Port Collection", [f"{ports}/1"])
    yield {
        **head(f"{ports}/1", "NetworkPort.v1_3_0.NetworkPort", "Network Port View"),
        "AssociatedNetworkAddresses": [card.mac],
        "PhysicalPortNumber": "1",
        "LinkStatus": "Up" if card.up else "Down",
        "ActiveLinkTechnology": "Ethernet",
    }


def _controller(card: _Card, functions: str, ports: str) -> Resource:
    return {
        "FirmwarePackageVersion": card.firmware,
        "Links": {
            "PCIeDevices": [ref(card.device)] if card.device else [],
            "NetworkPorts": [ref(f"{ports}/1")],
            "NetworkDeviceFunctions": [ref(f"{functions}/1")],
        },
        "ControllerCapabilities": {"NetworkPortCount": 1, "NetworkDeviceFunctionCount": 1},
        "Location": {
            "PartLocation": {
                "ServiceLabel": card.slot,
                "LocationType": "Slot",
                "LocationOrdinalValue": card.number,
            }
        },
    }


def _interface(card: _Card) -> Resource:
    return {
        **head(f"{_INTERFACES}/{card.number}", "EthernetInterface.v1_6_3.EthernetInterface", "AOC_NIC1"),
        "Description": f"{card.model} #1",
        "Status": {"State": "Enabled", "Health": "OK"},
        "LinkStatus": "LinkUp" if card.up else "LinkDown",
        "MACAddress": card.mac.lower(),
        "Links": {"NetworkDeviceFunction": ref(f"{paths.adapter(card.number)}/NetworkDeviceFunctions/1")},
    }


def _to_manager(path: str, machine: Machine) -> Resource:
    """The host's side of the USB network to the BMC; recorded at EthernetInterfaces/ToManager."""
    mac = f"BE:3A:F2:00:{machine.index >> 8 & 255:02X}:{machine.index & 255:02X}"
    return {
        **head(path, "EthernetInterface.v1_6_3.EthernetInterface", "Manager Ethernet Interface"),
        "Description": "Host Network Interface",
        "Status": {"State": "Enabled", "Health": "OK"},
        "InterfaceEnabled": True,
        "PermanentMACAddress": mac,
        "MACAddress": mac,
        "Links": {},
    }
