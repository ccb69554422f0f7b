"""PCIe devices and functions of GPUs and HCAs; recorded below Systems/… and, nearly the same, below Chassis/….

GPU: recorded at PCIeDevices/23-0 (vendor 10de, device 2331); HCA: at PCIeDevices/177-0 and 202-0 (vendor 15b3).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from clusterctl_lab.emulators.redfish.dell import identity, paths
from clusterctl_lab.emulators.redfish.resource import Resource, collection, head, ref, refs, status
from clusterctl_lab.emulators.redfish.view import View
from clusterctl_lab.machine import Gpu, Hca


@dataclass(frozen=True, slots=True)
class _Part:
    """The data that a PCIe device reports of the part in the slot. Ids are PCI ids in hex."""

    pci: str
    fqdd: str
    name: str
    manufacturer: str
    vendor_id: str
    device_id: str
    device_class: str
    class_code: str
    firmware: str = ""
    serial: str | None = None


def resources(view: View) -> Iterator[Resource]:
    parts = [*(_gpu(gpu) for gpu in view.machine.gpus), *(_hca(hca) for hca in view.machine.hcas)]
    for owner in (paths.SYSTEM, paths.CHASSIS):
        for part in parts:
            yield _device(owner, part)
            yield _function(owner, part)
    members = paths.pcie_devices(paths.CHASSIS, view.machine)
    yield collection(f"{paths.CHASSIS}/PCIeDevices", "PCIeDeviceCollection", "PCIeDevice Collection", members)


def _gpu(gpu: Gpu) -> _Part:
    return _Part(
        pci=gpu.pci,
        fqdd=paths.gpu_fqdd(gpu),
        name="NVIDIA Corporation",
        manufacturer="NVIDIA Corporation",
        vendor_id="0x10de",
        device_id="0x2330",
        device_class="DisplayController",
        class_code="0x000003",
    )


def _hca(hca: Hca) -> _Part:
    return _Part(
        pci=hca.pci,
        fqdd=f"{paths.hca_fqdd(hca)}-1",
        name="MT2910 Family [ConnectX-7]",
        manufacturer="Mellanox Technologies",
        vendor_id="0x15b3",
        device_id="0x1021",
        device_class="NetworkController",
        class_code="0x000002",
        firmware=hca.firmware,
        serial=identity.padded(hca.serial),
    )


def _device(owner: str, part: _Part) -> Resource:
    path = f"{owner}/PCIeDevices/{paths.pcie_id(part.pci)}"
    return {
        **head(path, "PCIeDevice.v1_7_0.PCIeDevice", part.name),
        "Description": part.name,
        "DeviceType": "SingleFunction",
        "FirmwareVersion": part.firmware,
        "Links": {
            **refs("Chassis", [paths.CHASSIS]),
            **refs("PCIeFunctions", [f"{path}/PCIeFunctions/{paths.pcie_id(part.pci)}-0"]),
        },
        "Manufacturer": part.manufacturer,
        "Model": None,
        "SerialNumber": part.serial,
        "Status": status(rollup=True),
    }


def _function(owner: str, part: _Part) -> Resource:
    device = f"{owner}/PCIeDevices/{paths.pcie_id(part.pci)}"
    return {
        **head(f"{device}/PCIeFunctions/{paths.pcie_id(part.pci)}-0", "PCIeFunction.v1_3_0.PCIeFunction", part.name),
        "ClassCode": part.class_code,
        "Description": part.name,
        "DeviceClass": part.device_class,
        "DeviceId": part.device_id,
        "FunctionId": 0,
        "FunctionType": "Physical",
        "Links": {"PCIeDevice": ref(device)},
        "Oem": {
            "Dell": {
                "@odata.type": "#DellOem.v1_3_0.DellOemResources",
                "DellPCIeFunction": {"DataBusWidth": "16XOrX16", "Id": part.fqdd},
            }
        },
        "Status": status(rollup=True),
        "VendorId": part.vendor_id,
    }
