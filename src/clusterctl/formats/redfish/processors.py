"""CPUs and GPUs.

Dell and AMI list GPUs as processors; Supermicro and HPE list them as PCIe devices only. PCIe functions of a Dell are
named `bus-device-function` in decimal.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import partial

from clusterctl.fleet.errors import ParseError
from clusterctl.fleet.node import Cpu, Dimm, Gpu
from clusterctl.formats.redfish.parts import RedfishPart, by_slot, comparable, merged, without_echo
from clusterctl.formats.redfish.system import (
    chassis,
    host_first,
    host_system,
    programmed,
    serial_number,
    service_label,
    well,
)
from clusterctl.formats.redfish.tree import GarbledError, RedfishTree, Resource

_GPU_TYPES = frozenset({"GPU", "Accelerator"})
_TYPES = _GPU_TYPES | {"CPU", "Core", "DSP", "FPGA", "OEM", "Partition", "Thread"}
"""Of DSP0268, Processor: a processor of another type does not identify its kind."""
_GPU_CLASSES = frozenset({"DisplayController", "ProcessingAccelerators"})
_GPU_VENDOR_IDS = frozenset({"0x10de", "10de", "4318", "0x1002", "4098"})  # NVIDIA, AMD; iLO 5 writes them in decimal
_GPU_MAKER = re.compile(r"nvidia|advanced micro devices|\bamd\b", re.IGNORECASE)
_GPU_NAME = re.compile(r"gpu", re.IGNORECASE)
_NO_MODEL = re.compile(
    r"[0-9A-Z]{3,5}(-[0-9A-Z]{2,6}){2,}|(processor|(pcie )?device|gpu|accelerator|adapter)[ _\d]*", re.IGNORECASE
)
"""Part numbers (`900-21010-0320-030`, `2330-885-A1`) and names of kinds, which some BMCs write in place of a model."""
_DELL_FUNCTION = re.compile(r"/PCIeFunctions/(\d+)-(\d+)-(\d+)")


def cpus(tree: RedfishTree) -> tuple[Cpu, ...]:
    """Return the populated CPU sockets of all Systems; `ParseError` where none is listed."""
    lists = [[item for item in items if item.term("ProcessorType") == "CPU"] for items in _processors(tree)]
    found = tree.kept(_proven(merged(without_echo(lists))), _cpu)
    if not found:
        raise ParseError("no CPU is listed", where="/redfish/v1/Systems Processors")
    return by_slot(found)


def cpu_count(tree: RedfishTree) -> int:
    """Return how many sockets are populated."""
    return len(cpus(tree))


def _proven(parts: list[RedfishPart]) -> list[RedfishPart]:
    """Return the parts without those that only another System than the first names, and without a serial.

    These may be the first System's too.
    """
    owner = parts[0].owner if parts else ""
    return [part for part in parts if part.owner == owner or part.serial]


def _cpu(part: RedfishPart) -> Cpu:
    item = part.resources[0]
    return Cpu(
        slot=service_label(item) or item.text("Socket") or item.id,
        model=part.first("Model").text("Model"),
        cores=part.first("TotalCores").whole("TotalCores"),
        serial=part.serial,
        healthy=part.healthy,
    )


def gpus(tree: RedfishTree) -> tuple[Gpu, ...]:
    """Return all GPUs of the machine, by slot; none only where processors and PCIe devices were read and show none.

    A GPU that both the host and its HGX board list is one. Its PCIe device gives what its processor does not.
    """
    parts = _gpu_parts(tree)
    devices = _devices(tree, tree.kept(parts, lambda part: None if _model(part) and part.healthy is not None else part))
    return by_slot(tree.kept(parts, lambda part: _gpu(part, devices.get(_path(part)))))


def _gpu_parts(tree: RedfishTree) -> list[RedfishPart]:
    """Return the GPUs among the processors, else among the PCIe devices."""
    lists = [[item for item in items if item.term("ProcessorType") in _GPU_TYPES] for items in _processors(tree)]
    listed = merged(without_echo(lists))
    parts = listed or [RedfishPart([device]) for device in _pcie_devices(tree) if _is_gpu(tree, device)]
    if not parts and tree.incomplete():
        raise ParseError("no GPU is among what could be read", where="/redfish/v1/Systems Processors")
    return parts


def _path(part: RedfishPart) -> str:
    return part.resources[0].path


def _devices(tree: RedfishTree, parts: Iterable[RedfishPart]) -> dict[str, Resource]:
    """Return each GPU's PCIe device: the one that it links to, else the one of its serial."""
    parts = tuple(parts)
    linked = {_path(part): part.first("Links", "PCIeDevice").link("Links", "PCIeDevice") or "" for part in parts}
    devices = {one.path: one for one in tree.readable(filter(None, linked.values()))}
    found = {path: devices[target] for path, target in linked.items() if target in devices}
    return found | _devices_by_serial(tree, [part for part in parts if _path(part) not in found and part.serial])


def _devices_by_serial(tree: RedfishTree, parts: list[RedfishPart]) -> dict[str, Resource]:
    if not parts:
        return {}
    devices = {serial_number(one): one for one in tree.attempt(partial(_pcie_devices, tree)) or ()}
    return {_path(part): devices[part.serial] for part in parts if part.serial in devices}


def _processors(tree: RedfishTree) -> list[list[Resource]]:
    """Return the processors of each System, the host's first, as far as they can be read."""
    holders = [one for one in host_first(tree) if one.has("Processors")]
    if not holders:
        raise ParseError("no System lists its processors", where="/redfish/v1/Systems Processors")
    return [list(tree.kept(items, _processor)) for items in tree.readable_members(holders, "Processors")]


def _processor(item: Resource) -> Resource | None:
    """Return a processor with a reported type; None for an empty socket."""
    if item.absent:
        return None
    if item.term("ProcessorType") not in _TYPES:
        raise GarbledError("the BMC does not report the type of the processor", where=item.where("ProcessorType"))
    return comparable(item)


def _pcie_devices(tree: RedfishTree) -> list[Resource]:
    listing = [one for one in chassis(tree) if one.has("PCIeDevices")]
    if not listing:
        raise ParseError("no chassis lists its PCIe devices", where="/redfish/v1/Chassis PCIeDevices")
    return list(tree.kept(tree.present(listing, "PCIeDevices"), comparable))


def _is_gpu(tree: RedfishTree, device: Resource) -> bool:
    """Return whether a device is a GPU: by its name, else by its PCI functions, unless the maker makes no GPUs."""
    if _GPU_NAME.match(device.id) or _GPU_NAME.match(device.text("Name")):
        return True
    maker = device.text("Manufacturer")
    if (maker and not _GPU_MAKER.search(maker)) or not device.has("PCIeFunctions"):
        return False
    (functions,) = tree.readable_members([device], "PCIeFunctions")
    return any(
        function.text("DeviceClass") in _GPU_CLASSES and function.text("VendorId").lower() in _GPU_VENDOR_IDS
        for function in functions
    )


def _model(part: RedfishPart, device: Resource | None = None) -> str:
    """Return the first name that is no part number; empty where the resources of the GPU have none.

    A Dell names a PCIe device after its maker.
    """
    resources = (*part.resources, *([device] if device is not None else []))
    names = [
        one.text(name)
        for name in ("Model", "Name")
        for one in resources
        if one.text(name) not in (one.id, one.text("Manufacturer"))
    ]
    return next((text for text in names if programmed(text) and not _NO_MODEL.fullmatch(text)), "")


def _gpu(part: RedfishPart, device: Resource | None) -> Gpu:
    item = part.resources[0]
    functions = item.links("Links", "PCIeFunctions")
    numbers = _DELL_FUNCTION.search(functions[0]) if functions else None
    pci = "0000:{:02x}:{:02x}.{:x}".format(*map(int, numbers.groups())) if numbers else ""
    healthy = well(device) if part.healthy is None and device is not None else part.healthy
    return Gpu(slot=item.id, model=_model(part, device), serial=part.serial, pci=pci, healthy=healthy)


def dimms(tree: RedfishTree) -> tuple[Dimm, ...]:
    """Return all that are plugged in, by slot; empty sockets are listed as absent, or without capacity.

    A HGX board lists the memory of its GPUs too, which is no module.
    """
    holders = [one for one in host_first(tree) if one.has("Memory")]
    if not holders:
        raise ParseError("no System lists its memory", where="/redfish/v1/Systems Memory")
    lists = [tree.kept(items, _module) for items in tree.readable_members(holders, "Memory")]
    there = [dimm for dimm in tree.kept(_proven(merged(lists)), _dimm) if _is_fitted(dimm)]
    if not there and tree.incomplete():
        raise ParseError("no module is among what could be read", where=holders[0].where("Memory"))
    return by_slot(there)


def _module(item: Resource) -> Resource | None:
    """Return a module of the host; None for an empty socket, and for the memory of a GPU."""
    return None if item.absent or _of_gpu(item) else comparable(item)


def _is_fitted(dimm: Dimm) -> bool:
    """Return whether the socket holds a module: a failed one may have lost its size."""
    return bool(dimm.size_mib) or dimm.healthy is False


def _of_gpu(item: Resource) -> bool:
    return item.text("MemoryDeviceType").startswith("HBM") or bool(_GPU_NAME.match(item.id))


def _dimm(part: RedfishPart) -> Dimm:
    item, sized = part.resources[0], part.first("CapacityMiB")
    size, healthy = sized.whole("CapacityMiB"), part.healthy
    if size is None and healthy is not False and item.term("Status", "State") in ("", "Enabled"):
        raise ParseError("the BMC does not report the size of the module", where=item.where("CapacityMiB"))
    return Dimm(
        slot=service_label(item) or item.text("DeviceLocator") or item.id,
        size_mib=size or 0,
        model=part.first("PartNumber").text("PartNumber"),
        serial=part.serial,
        healthy=healthy,
    )


_MOST_MEMORY = 2**20
"""GiB; more than any server has."""


def memory_gib(tree: RedfishTree) -> float:
    """Return the host's summary; the sum of its modules where it has no summary."""
    host = host_system(tree)
    found = host.number("MemorySummary", "TotalSystemMemoryGiB")
    if found and found > _MOST_MEMORY:
        raise GarbledError("the size is not plausible", where=host.where("MemorySummary", "TotalSystemMemoryGiB"))
    if found and found > 0:
        return float(found)
    modules = dimms(tree)
    if not modules or tree.incomplete():
        raise ParseError("the BMC does not report it", where=host.where("MemorySummary", "TotalSystemMemoryGiB"))
    return sum(module.size_mib for module in modules) / 1024
