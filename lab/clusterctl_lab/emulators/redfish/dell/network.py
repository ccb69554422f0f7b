"""Network adapters; recorded at Chassis/System.Embedded.1/NetworkAdapters.

Ethernet follows NIC.Embedded.1. InfiniBand follows InfiniBand.Slot.7 (a ConnectX-6, whose GUIDs, model and serial that
iDRAC leaves empty); model and serial follow NIC.Slot.5 (a BlueField-2, padded serial). The `InfiniBand` object of a
device function is not recorded: DMTF NetworkDeviceFunction v1_5_0.
"""

from __future__ import annotations

from collections.abc import Iterator

from clusterctl_lab.emulators.redfish.dell import identity, paths
from clusterctl_lab.emulators.redfish.resource import Resource, collection, head, ref, refs, status
from clusterctl_lab.emulators.redfish.view import View
from clusterctl_lab.machine import Hca

_OEM = "#DellOem.v1_3_0.DellOemResources"


def resources(view: View) -> Iterator[Resource]:
    members = [f"{paths.ADAPTERS}/{paths.NIC}", *(_path(hca) for hca in view.machine.hcas)]
    yield collection(paths.ADAPTERS, "NetworkAdapterCollection", "Network Adapter Collection", members)
    yield from _ethernet(view)
    for hca in view.machine.hcas:
        yield from _infiniband(hca, view)


def _path(hca: Hca) -> str:
    return f"{paths.ADAPTERS}/{paths.hca_fqdd(hca)}"


def _ethernet(view: View) -> Iterator[Resource]:
    path, mac = f"{paths.ADAPTERS}/{paths.NIC}", view.machine.boot_mac.upper()
    port, function = f"{path}/NetworkPorts/{paths.NIC}-1", f"{path}/NetworkDeviceFunctions/{paths.NIC}-1-1"
    yield {
        **_adapter(path, function, port),
        "Manufacturer": "Broadcom Inc. and subsidiaries",
        "Model": None,
        "SerialNumber": None,
    }
    yield from _collections(path, function, port)
    yield {**_port(port, up=view.running, technology="Ethernet"), "AssociatedNetworkAddresses": [mac]}
    yield {
        **_function(function, port, mac),
        "NetDevFuncType": "Ethernet",
        "Oem": {"Dell": {"@odata.type": _OEM, "DellInfiniBand": None, "DellNIC": _dell_nic(function, mac)}},
    }


def _infiniband(hca: Hca, view: View) -> Iterator[Resource]:
    path = _path(hca)
    port = f"{path}/NetworkPorts/{paths.hca_fqdd(hca)}-1"
    function = f"{path}/NetworkDeviceFunctions/{paths.hca_fqdd(hca)}-1"
    adapter = _adapter(path, function, port)
    adapter["Controllers"][0]["FirmwarePackageVersion"] = hca.firmware
    yield {
        **adapter,
        "Manufacturer": "Mellanox Technologies",
        "Model": hca.model,
        "SerialNumber": identity.padded(hca.serial),
    }
    yield from _collections(path, function, port)
    technology = "Ethernet" if hca.ethernet else "InfiniBand"
    yield _port(port, up=view.running and hca.cable is not None, technology=technology)
    if hca.ethernet:
        vendor = {"Dell": {"@odata.type": _OEM, "DellInfiniBand": None}}
        yield {**_function(function, port, hca.mac.upper()), "NetDevFuncType": "Ethernet", "Oem": vendor}
        return
    yield {
        **_function(function, port, None),
        "InfiniBand": {"NodeGUID": _guid(hca), "PortGUID": _guid(hca)},
        "NetDevFuncType": None,
        "Oem": {"Dell": {"@odata.type": _OEM, "DellInfiniBand": _dell_infiniband(function, hca), "DellNIC": None}},
    }


def _adapter(path: str, function: str, port: str) -> Resource:
    return {
        **head(path, "NetworkAdapter.v1_7_0.NetworkAdapter", "Network Adapter View"),
        "Controllers": [
            {"Links": {**refs("NetworkDeviceFunctions", [function]), **refs("NetworkPorts", [port])}},
        ],
        "Controllers@odata.count": 1,
        "Description": "Network Adapter View",
        "NetworkDeviceFunctions": ref(f"{path}/NetworkDeviceFunctions"),
        "NetworkPorts": ref(f"{path}/NetworkPorts"),
        "PartNumber": None,
        "Status": status(rollup=True),
    }


def _collections(path: str, function: str, port: str) -> Iterator[Resource]:
    yield collection(
        f"{path}/NetworkDeviceFunctions",
        "NetworkDeviceFunctionCollection",
        "Network Device Function Collection",
        [function],
    )
    yield collection(f"{path}/NetworkPorts", "NetworkPortCollection", "Network Port Collection", [port])


def _port(path: str, *, up: bool, technology: str) -> Resource:
    return {
        **head(path, "NetworkPort.v1_4_1.NetworkPort", "Network Port View"),
        "ActiveLinkTechnology": technology,
        "Description": "Network Port View",
        "LinkStatus": "Up" if up else "Down",
        "PhysicalPortNumber": "1",
        "Status": status(rollup=True),
    }


def _function(path: str, port: str, mac: str | None) -> Resource:
    return {
        **head(path, "NetworkDeviceFunction.v1_7_0.NetworkDeviceFunction", "NetworkDeviceFunction"),
        **refs("AssignablePhysicalPorts", [port]),
        "Description": "NetworkDeviceFunction",
        "Ethernet": {"MACAddress": mac, "PermanentMACAddress": mac},
        "Links": {"PhysicalPortAssignment": ref(port)},
        "Status": status(rollup=True),
    }


def _dell_nic(function: str, mac: str) -> Resource:
    """Recorded at NIC.Embedded.1-1-1: the only place that names the product."""
    fqdd = f"{paths.NIC}-1-1"
    return {
        "@odata.context": "/redfish/v1/$metadata#DellNIC.DellNIC",
        "@odata.id": f"{function}/Oem/Dell/DellNIC/{fqdd}",
        "@odata.type": "#DellNIC.v1_5_0.DellNIC",
        "FQDD": fqdd,
        "Id": fqdd,
        "MediaType": "Base T",
        "Name": "DellNIC",
        "PCIDeviceID": "165f",
        "PCIVendorID": "14e4",
        "ProductName": f"Broadcom Gigabit Ethernet BCM5720 - {mac}",
        "Protocol": "NIC",
        "VendorName": "Broadcom Corp",
    }


def _dell_infiniband(function: str, hca: Hca) -> Resource:
    fqdd = f"{paths.hca_fqdd(hca)}-1"
    return {
        "@odata.context": "/redfish/v1/$metadata#DellInfiniBand.DellInfiniBand",
        "@odata.id": f"{function}/Oem/Dell/DellInfiniBand/{fqdd}",
        "@odata.type": "#DellInfiniBand.v1_2_0.DellInfiniBand",
        "BusNumber": paths.bus(hca.pci),
        "FQDD": fqdd,
        "FamilyVersion": hca.firmware,
        "Id": fqdd,
        "Name": "DellInfiniBand",
        "NodeGUID": _guid(hca),
        "NumberOfPorts": 1,
        "PCIDeviceID": "1021",
        "PCIVendorID": "15b3",
        "PermanentPortGUID": _guid(hca),
        "ProductName": hca.model,
        "Protocol": "RDMA,InfiniBand",
        "VendorName": "Mellanox Technologies, Inc.",
    }


def _guid(hca: Hca) -> str:
    """`A0:88:C2:…`, the pattern that the DMTF schema prescribes for GUIDs."""
    return ":".join(hca.guid[i : i + 2] for i in range(0, len(hca.guid), 2)).upper()
