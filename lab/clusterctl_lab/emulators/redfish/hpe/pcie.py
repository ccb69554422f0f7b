"""PCIe devices and their functions; recorded at Chassis/1/PCIeDevices: 222 (a video controller) and 223 (an HCA).

PCI ids and class codes are decimal there (5555 is 15b3h), and fields are padded with blanks. A GPU is not recorded: its
record follows those two.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from clusterctl_lab.emulators.redfish.hpe import identity, paths
from clusterctl_lab.emulators.redfish.resource import Resource, collection, head, ref
from clusterctl_lab.emulators.redfish.view import View
from clusterctl_lab.machine import Gpu, Hca

_OK = {"Health": "OK", "State": "Enabled"}
_UNKNOWN: dict[str, str | None] = {"Health": None, "State": None}


@dataclass(frozen=True, slots=True)
class _Device:
    """`vendor_id`, `device_id` and `class_code` as decimal numbers."""

    path: str
    name: str
    manufacturer: str
    model: str
    serial: str
    firmware: str
    device_class: str
    class_code: int
    vendor_id: int
    device_id: int


def resources(view: View) -> Iterator[Resource]:
    devices = [*(_gpu(gpu) for gpu in view.machine.gpus), *(_hca(hca) for hca in view.machine.hcas)]
    yield collection(paths.PCIE_DEVICES, "PCIeDeviceCollection", "PCIeDevice", [device.path for device in devices])
    for device in devices:
        yield _resource(device)
        functions = f"{device.path}/PCIeFunctions"
        yield collection(functions, "PCIeFunctionCollection", "PCIeFunctions", [f"{functions}/1"])
        yield _function(f"{functions}/1", device)


def _gpu(gpu: Gpu) -> _Device:
    return _Device(
        path=paths.gpu(gpu),
        name=gpu.model,
        manufacturer="NVIDIA Corporation",
        model=gpu.model,
        serial=gpu.serial,
        firmware="96.00.89.00.01",
        device_class="DisplayController",
        class_code=3,
        vendor_id=0x10DE,
        device_id=0x2330,
    )


def _hca(hca: Hca) -> _Device:
    return _Device(
        path=paths.hca_device(hca),
        name="ConnectX-7 NDR 1P",
        manufacturer="Mellanox",
        model="P45641-B21",
        serial=hca.serial,
        firmware=hca.firmware,
        device_class="NetworkController",
        class_code=2,
        vendor_id=0x15B3,
        device_id=0x1021,
    )


def _resource(device: _Device) -> Resource:
    network = device.device_class == "NetworkController"
    return {
        **head(device.path, "PCIeDevice.v1_5_0.PCIeDevice", device.name),
        "FirmwareVersion": device.firmware,
        "Manufacturer": device.manufacturer,
        "Model": identity.padded(device.model),
        "PCIeFunctions": ref(f"{device.path}/PCIeFunctions"),
        "PartNumber": identity.padded(device.model),
        "SerialNumber": identity.padded(device.serial),
        "Status": _UNKNOWN if network else _OK,
    }


def _function(path: str, device: _Device) -> Resource:
    return {
        **head(path, "PCIeFunction.v1_2_3.PCIeFunction", "Function 1"),
        "ClassCode": str(device.class_code),
        "DeviceClass": device.device_class,
        "DeviceId": str(device.device_id),
        "FunctionId": 1,
        "FunctionType": "Physical",
        "VendorId": str(device.vendor_id),
    }
