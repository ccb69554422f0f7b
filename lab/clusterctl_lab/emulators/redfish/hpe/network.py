"""Network adapters and Ethernet interfaces; recorded at Chassis/1/NetworkAdapters/DE083000 (an InfiniBand card) and
Systems/1/EthernetInterfaces, which has the ports of all cards.

iLO itself reports the card that the host boots from, so it is an Ethernet interface and no network adapter (recorded:
the Intel I350-T4); health, state and link of the interfaces are null. Data reported by a card itself has no
`@odata.context`.
"""

from __future__ import annotations

from collections.abc import Iterator

from clusterctl_lab.emulators.redfish.hpe import identity, paths
from clusterctl_lab.emulators.redfish.resource import Resource, bare, collection, head, ref
from clusterctl_lab.emulators.redfish.view import View
from clusterctl_lab.machine import Hca

_INTERFACES = f"{paths.SYSTEM}/EthernetInterfaces"


def resources(view: View) -> Iterator[Resource]:
    machine = view.machine
    members = [paths.adapter(hca) for hca in machine.hcas]
    yield collection(paths.ADAPTERS, "NetworkAdapterCollection", "NetworkAdapterCollection", members)
    for hca in machine.hcas:
        yield from map(bare, _adapter(hca, up=view.running and hca.cable is not None))
    macs = [machine.boot_mac, *(identity.hca_mac(hca) for hca in machine.hcas)]
    interfaces = [_interface(number, mac) for number, mac in enumerate(macs, start=1)]
    listed = [interface["@odata.id"] for interface in interfaces]
    yield collection(_INTERFACES, "EthernetInterfaceCollection", "System Ethernet Interfaces", listed)
    yield from interfaces


def _adapter(hca: Hca, *, up: bool) -> Iterator[Resource]:
    path = paths.adapter(hca)
    functions, ports = f"{path}/NetworkDeviceFunctions", f"{path}/NetworkPorts"
    yield {
        **head(path, "NetworkAdapter.v1_5_0.NetworkAdapter", "NetworkAdapter"),
        "Controllers": [
            {
                "ControllerCapabilities": {"NetworkDeviceFunctionCount": 1, "NetworkPortCount": 1},
                "FirmwarePackageVersion": hca.firmware,
            }
        ],
        "Manufacturer": "MLNX",
        "Model": hca.model,
        "NetworkDeviceFunctions": ref(functions),
        "NetworkPorts": ref(ports),
        "PartNumber": "P45641-B21",
        "SKU": "P45641-B21",
        "SerialNumber": hca.serial,
    }
    yield collection(functions, "NetworkDeviceFunctionCollection", "NetworkDeviceFunctions", [f"{functions}/0"])
    yield _function(f"{functions}/0", f"{ports}/0", hca)
    yield collection(ports, "NetworkPortCollection", "NetworkPorts", [f"{ports}/0"])
    yield {
        **head(f"{ports}/0", "NetworkPort.v1_3_0.NetworkPort", "NetworkPort"),
        "ActiveLinkTechnology": "InfiniBand",
        "AssociatedNetworkAddresses": [identity.guid(hca)],
        "LinkStatus": "Up" if up else "Down",
        "PhysicalPortNumber": "1",
    }


def _function(path: str, port: str, hca: Hca) -> Resource:
    mac, guid = identity.hca_mac(hca), identity.guid(hca)
    kinds = ("NodeGUID", "PermanentNodeGUID", "PermanentPortGUID", "PermanentSystemGUID", "PortGUID", "SystemGUID")
    return {
        **head(path, "NetworkDeviceFunction.v1_5_0.NetworkDeviceFunction", "NetworkDeviceFunction"),
        "AssignablePhysicalPorts": [ref(port)],
        "BootMode": "PXE",
        "DeviceEnabled": True,
        "Ethernet": {"MACAddress": mac, "PermanentMACAddress": mac},
        "InfiniBand": {"MTUSize": 4096, **dict.fromkeys(kinds, guid)},
        "Links": {"PhysicalPortAssignment": ref(port)},
        "NetDevFuncCapabilities": ["InfiniBand", "Ethernet"],
        "NetDevFuncType": "InfiniBand",
    }


def _interface(number: int, mac: str) -> Resource:
    return {
        **head(f"{_INTERFACES}/{number}", "EthernetInterface.v1_4_1.EthernetInterface", ""),
        "FullDuplex": False,
        "InterfaceEnabled": None,
        "LinkStatus": None,
        "MACAddress": mac,
        "SpeedMbps": None,
        "Status": {"Health": None, "State": None},
        "UefiDevicePath": f"PciRoot(0x{number})/Pci(0x1,0x3)/Pci(0x0,0x0)",
    }
