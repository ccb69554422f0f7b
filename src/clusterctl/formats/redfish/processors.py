"""CPUs and GPUs.

Dell and AMI list GPUs as processors; Supermicro and HPE list them as PCIe devices only. PCIe functions of a Dell are
named `bus-device-function` in decimal.
"""

from __future__ import annotations

import re
from itertools import chain

from clusterctl.fleet.errors import ParseError
from clusterctl.fleet.natural_order import natural_key
from clusterctl.fleet.node import Cpu, Dimm, Gpu
from clusterctl.formats.redfish.system import chassis, host_system, serial_number, service_label, systems, well
from clusterctl.formats.redfish.tree import Resource, Tree

_GPU_TYPES = frozenset({"GPU", "Accelerator"})
_GPU_CLASSES = frozenset({"DisplayController", "ProcessingAccelerators"})
_GPU_VENDOR_IDS = frozenset({"0x10de", "10de", "4318", "0x1002", "4098"})  # NVIDIA, AMD; iLO 5 writes them in decimal
_GPU_MAKER = re.compile(r"nvidia|advanced micro devices|\bamd\b", re.IGNORECASE)
_GPU_NAME = re.compile(r"gpu", re.IGNORECASE)
_DELL_FUNCTION = re.compile(r"/PCIeFunctions/(\d+)-(\d+)-(\d+)")


def cpus(tree: Tree) -> tuple[Cpu, ...]:
    """Populated CPU sockets; `ParseError` where none is listed."""
    found = [_cpu(item) for item in _processors(tree) if item.text("ProcessorType") == "CPU"]
    if not found:
        raise ParseError("no CPU is listed", where="/redfish/v1/Systems Processors")
    return tuple(sorted(found, key=lambda cpu: natural_key(cpu.slot)))


def cpu_count(tree: Tree) -> int:
    return len(cpus(tree))


def _cpu(item: Resource) -> Cpu:
    return Cpu(
        slot=service_label(item) or item.text("Socket") or item.id,
        model=item.text("Model"),
        cores=item.whole("TotalCores"),
        serial=serial_number(item),
        healthy=well(item),
    )


def gpus(tree: Tree) -> tuple[Gpu, ...]:
    """All GPUs of the machine, by slot; none only where processors and PCIe devices were read and show none.

    One that both the host and its HGX board list is one, where its serial says so.
    """
    listed = [item for item in _processors(tree) if item.text("ProcessorType") in _GPU_TYPES]
    found = _once(listed) or [device for device in _pcie_devices(tree) if _is_gpu(tree, device)]
    return tuple(sorted((_gpu(item) for item in found), key=lambda gpu: natural_key(gpu.slot)))


def _once(listed: list[Resource]) -> list[Resource]:
    """Without those that another system has listed before by the same serial; within one system none is left out."""
    seen: dict[str, str] = {}
    kept = []
    for item in listed:
        system, number = item.path.rpartition("/Processors/")[0], serial_number(item)
        if not number or seen.setdefault(number, system) == system:
            kept.append(item)
    return kept


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
    return Gpu(slot=item.id, model=item.text("Model"), serial=serial_number(item), pci=pci, healthy=well(item))


def dimms(tree: Tree) -> tuple[Dimm, ...]:
    """All that are plugged in, by slot; empty sockets are listed as absent, or without capacity."""
    found = [_dimm(item) for item in tree.members(host_system(tree), "Memory") if not item.absent]
    there = [dimm for dimm in found if dimm.size_mib or dimm.healthy is False]
    return tuple(sorted(there, key=lambda dimm: natural_key(dimm.slot)))


def _dimm(item: Resource) -> Dimm:
    size, healthy = item.whole("CapacityMiB"), well(item)
    if size is None and healthy is not False and item.text("Status", "State") in ("", "Enabled"):
        raise ParseError("the module does not tell its size", where=item.where("CapacityMiB"))
    return Dimm(
        slot=service_label(item) or item.text("DeviceLocator") or item.id,
        size_mib=size or 0,
        model=item.text("PartNumber"),
        serial=serial_number(item),
        healthy=healthy,
    )
