"""PCIe devices and their functions; recorded at Chassis/1/PCIeDevices (GPU1, NIC1)."""

from __future__ import annotations

from collections.abc import Iterator

from clusterctl_lab.emulators.redfish.resource import Resource, collection, head, ref
from clusterctl_lab.emulators.redfish.supermicro import paths
from clusterctl_lab.emulators.redfish.view import View
from clusterctl_lab.machine import Gpu, Hca

GPU_FIRMWARE = "96.00.61.00.01"
_OK = {"State": "Enabled", "Health": "OK", "HealthRollup": "OK"}


def resources(view: View) -> Iterator[Resource]:
    machine = view.machine
    devices = [*(_gpu(gpu) for gpu in machine.gpus), *(_nic(hca) for hca in machine.hcas)]
    members = [device["@odata.id"] for device in devices]
    yield collection(paths.PCIE_DEVICES, "PCIeDeviceCollection", "PCIe Device Collection", members)
    for device in devices:
        yield device
        yield _functions(device)
        yield _function(device)


def nic(number: int) -> str:
    return f"{paths.PCIE_DEVICES}/NIC{number}"


def gpu_model(gpu: Gpu) -> str:
    """Without the maker's name, as recorded: `H100 80GB HBM3`."""
    return gpu.model.removeprefix("NVIDIA ")


def _gpu(gpu: Gpu) -> Resource:
    path = paths.gpu(gpu)
    name = path.rsplit("/", 1)[-1]
    return {
        **head(path, "PCIeDevice.v1_5_0.PCIeDevice", name),
        "Description": f"GPU Device {gpu.index + 1}",
        "Model": gpu_model(gpu),
        "SerialNumber": gpu.serial,
        "PartNumber": "2330-885-A1",
        "FirmwareVersion": GPU_FIRMWARE,
        "DeviceType": "MultiFunction",
        **_common(path),
        "Oem": {
            "Supermicro": {
                "@odata.type": "#SmcGPUExtensions.v1_0_0.GPU",
                "GPUSlot": gpu.index + 1,
                "GPUVendor": "NVIDIA",
            }
        },
    }


def _nic(hca: Hca) -> Resource:
    path = nic(paths.hca_number(hca))
    return {
        **head(path, "PCIeDevice.v1_5_0.PCIeDevice", "PCIeDevices"),
        "Description": "NIC device",
        "Manufacturer": "Supermicro",
        "Model": hca.model,
        "SerialNumber": hca.serial,
        "PartNumber": hca.model,
        "DeviceType": "SingleFunction",
        "FirmwareVersion": hca.firmware,
        **_common(path),
    }


def _common(path: str) -> Resource:
    return {
        "Status": _OK,
        "PCIeInterface": {"PCIeType": "Gen5", "MaxPCIeType": "Gen5", "LanesInUse": 16, "MaxLanes": 16},
        "PCIeFunctions": ref(f"{path}/PCIeFunctions"),
        "Links": {"Chassis": [ref(paths.CHASSIS)]},
    }


def _functions(device: Resource) -> Resource:
    path = f"{device['@odata.id']}/PCIeFunctions"
    return collection(path, "PCIeFunctionCollection", "PCIe Function Collection", [f"{path}/1"])


def _function(device: Resource) -> Resource:
    """A GPU's PCI ids are zeros, as recorded."""
    is_gpu = device["Id"].startswith("GPU")
    ids = ("0x0000", "0x0000") if is_gpu else ("0x15b3", "0x1021")
    return {
        **head(f"{device['@odata.id']}/PCIeFunctions/1", "PCIeFunction.v1_2_3.PCIeFunction", device["Id"]),
        "FunctionId": 1,
        "FunctionType": "Physical",
        "DeviceClass": "DisplayController" if is_gpu else "NetworkController",
        "VendorId": ids[0],
        "DeviceId": ids[1],
        "Status": _OK,
        "Links": {"PCIeDevice": ref(device["@odata.id"])},
    }
