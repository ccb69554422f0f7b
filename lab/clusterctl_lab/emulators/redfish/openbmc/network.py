"""Network adapters and Ethernet interfaces; recorded at Chassis/DGX/NetworkAdapters (DevType7_NIC0: Ethernet on board,
DevType7_NIC2: an InfiniBand port) and Systems/DGX/EthernetInterfaces.

It reports no maker, model, serial or GUID of a card, and calls an Ethernet port without link disabled.
"""

from __future__ import annotations

from collections.abc import Iterator

from clusterctl_lab.emulators.redfish.openbmc import paths
from clusterctl_lab.emulators.redfish.resource import Resource, collection, counted, head, ref, refs
from clusterctl_lab.emulators.redfish.view import View

_INTERFACES = f"{paths.SYSTEM}/EthernetInterfaces"
ONBOARD_FIRMWARE = "1.3105.0"


def resources(view: View) -> Iterator[Resource]:
    machine = view.machine
    kinds = {0: "Ethernet", **{hca.rail + 1: "InfiniBand" for hca in machine.hcas}}
    ups = {0: view.running, **{hca.rail + 1: view.running and hca.cable is not None for hca in machine.hcas}}
    members = [_path(number) for number in kinds]
    yield collection(paths.ADAPTERS, "NetworkAdapterCollection", "NetworkAdapter Collection", members)
    for number, kind in kinds.items():
        mac = machine.boot_mac.upper() if kind == "Ethernet" else ""
        yield from _adapter(number, kind, mac, up=ups[number])
    interface = f"{_INTERFACES}/EthernetInterface0"
    yield collection(_INTERFACES, "EthernetInterfaceCollection", "Ethernet Interface Collection", [interface])
    yield _interface(interface, machine.boot_mac.upper(), up=view.running)


def _path(number: int) -> str:
    return f"{paths.ADAPTERS}/DevType7_NIC{number}"


def _adapter(number: int, kind: str, mac: str, *, up: bool) -> Iterator[Resource]:
    path = _path(number)
    functions, ports = f"{path}/NetworkDeviceFunctions", f"{path}/Ports"
    function, port = f"{functions}/NetworkDeviceFunction{number}", f"{ports}/DevTypeE_Slot{number}_Instance0_PORT0"
    firmware = ONBOARD_FIRMWARE if kind == "Ethernet" else "nil"
    yield {
        **head(path, "NetworkAdapter.v1_5_0.NetworkAdapter", f"DevType7_NIC{number}"),
        "Controllers": [
            {
                "ControllerCapabilities": {"NetworkDeviceFunctionCount": 1, "NetworkPortCount": 1},
                "FirmwarePackageVersion": firmware,
                "Links": {**refs("NetworkDeviceFunctions", [function]), **refs("Ports", [port])},
            }
        ],
        "NetworkDeviceFunctions": ref(functions),
        "Ports": ref(ports),
        "Status": _status(up=up),
    }
    yield collection(functions, "NetworkDeviceFunctionCollection", "NetworkDeviceFunction Collection", [function])
    yield {
        **head(function, "NetworkDeviceFunction.v1_5_0.NetworkDeviceFunction", f"NetworkDeviceFunction{number}"),
        **refs("AssignablePhysicalNetworkPorts", [port]),
        "Ethernet": {"MACAddress": mac, "MTUSize": 1500, "PermanentMACAddress": mac} if mac else {},
        "Links": {"PhysicalNetworkPortAssignment": ref(port)},
        "NetDevFuncCapabilities": [kind],
        "NetDevFuncType": kind,
        "Status": _status(up=up),
    }
    yield collection(ports, "PortCollection", "Port Collection", [port])
    yield {
        **head(port, "Port.v1_3_0.Port", port.rsplit("/", 1)[-1]),
        "LinkNetworkTechnology": kind,
        "LinkStatus": "LinkUp" if up else "LinkDown",
        "PortId": "0",
        "PortProtocol": kind,
        "Status": _status(up=up),
    }


def _status(*, up: bool) -> Resource:
    return {"Health": "OK", "State": "Enabled" if up else "Disabled"}


def _interface(path: str, mac: str, *, up: bool) -> Resource:
    function = f"{_path(0)}/NetworkDeviceFunctions/NetworkDeviceFunction0"
    return {
        **head(path, "EthernetInterface.v1_6_2.EthernetInterface", "EthernetInterface0"),
        "EthernetInterfaceType": "Physical",
        "InterfaceEnabled": up,
        "LinkStatus": "LinkUp" if up else "LinkDown",
        "Links": {
            "Chassis": ref(paths.CHASSIS),
            **{key: value for key, value in counted("Endpoints", []).items() if "@" in key},
            "NetworkDeviceFunction": ref(function),
        },
        "MACAddress": mac,
        "PermanentMACAddress": mac,
        "Status": _status(up=up),
        "UefiDevicePath": "PciRoot(0x0)/Pci(0x10,0x0)/Pci(0x0,0x0)",
    }
