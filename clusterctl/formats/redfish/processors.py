"""CPUs and GPUs.

Dell and AMI list GPUs as processors; Supermicro and HPE list them as PCIe devices only. PCIe functions of a Dell are
named `bus-device-function` in decimal.
"""

from __future__ import annotations

import re
from itertools import chain

from clusterctl.fleet.errors import ParseError
from clusterctl.fleet.node import Gpu, Serial
from clusterctl.formats.redfish.system import chassis, systems
from clusterctl.formats.redfish.tree import Resource, Tree

_GPU_TYPES = frozenset({"GPU", "Accelerator"})
_GPU_CLASSES = frozenset({"DisplayController", "ProcessingAccelerators"})
_GPU_VENDOR_IDS = frozenset({"0x10de", "0x1002"})  # NVIDIA, AMD
_GPU_MAKER = re.compile(r"nvidia|advanced micro devices|\bamd\b", re.IGNORECASE)
_GPU_NAME = re.compile(r"gpu", re.IGNORECASE)
_DELL_FUNCTION = re.compile(r"/PCIeFunctions/(\d+)-(\d+)-(\d+)")


def cpu_count(tree: Tree) -> int:
    """Populated CPU sockets."""
    found = sum(1 for item in _processors(tree) if item.text("ProcessorType") == "CPU")
    if not found:
        raise ParseError("no CPU is listed", where="/redfish/v1/Systems Processors")
    return found


def gpus(tree: Tree) -> tuple[Gpu, ...]:
    """All GPUs of the machine, by slot; none only where processors and PCIe devices were read and show none."""
    listed = [item for item in _processors(tree) if item.text("ProcessorType") in _GPU_TYPES]
    found = listed or [device for device in _pcie_devices(tree) if _is_gpu(tree, device)]
    return tuple(sorted((_gpu(item) for item in found), key=lambda gpu: natural(gpu.slot)))


def natural(slot: str) -> tuple[tuple[int, str], ...]:
    """Sort key that puts slot 2 before slot 10."""
    return tuple((int(part), "") if part.isdigit() else (-1, part) for part in re.findall(r"[0-9]+|[^0-9]+", slot))


def _processors(tree: Tree) -> list[Resource]:
    listed = chain.from_iterable(tree.gather(systems(tree), "Processors"))
    found = [item for item in listed if not item.absent]
    for item in found:
        if not item.text("ProcessorType"):
            raise ParseError("the processor does not say what it is", where=item.where("ProcessorType"))
    return found


def _pcie_devices(tree: Tree) -> list[Resource]:
    listing = [one for one in chassis(tree) if one.has("PCIeDevices")]
    if not listing:
        raise ParseError("no chassis lists its PCIe devices", where="/redfish/v1/Chassis PCIeDevices")
    found = {item.path: item for item in chain.from_iterable(tree.gather(listing, "PCIeDevices"))}
    return [item for item in found.values() if not item.absent]


def _is_gpu(tree: Tree, device: Resource) -> bool:
    """By name where it says so, else by what its PCI functions say, unless the maker makes no GPUs."""
    if _GPU_NAME.match(device.id) or _GPU_NAME.match(device.text("Name")):
        return True
    maker = device.text("Manufacturer")
    if maker and not _GPU_MAKER.search(maker):
        return False
    return any(
        function.text("DeviceClass") in _GPU_CLASSES and function.text("VendorId").lower() in _GPU_VENDOR_IDS
        for function in tree.members(device, "PCIeFunctions")
    )


def _gpu(item: Resource) -> Gpu:
    functions = item.links("Links", "PCIeFunctions")
    numbers = _DELL_FUNCTION.search(functions[0]) if functions else None
    pci = "0000:{:02x}:{:02x}.{:x}".format(*map(int, numbers.groups())) if numbers else ""
    number = item.text("SerialNumber")
    return Gpu(slot=item.id, model=item.text("Model"), serial=Serial(number) if number else None, pci=pci)
