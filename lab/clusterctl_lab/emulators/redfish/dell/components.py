"""The machine: CPUs and memory modules.

CPUs and GPUs; recorded at Systems/System.Embedded.1/Processors (CPU.Socket.1, Video.Slot.2-1).

Memory modules; recorded at Systems/System.Embedded.1/Memory (DIMM.Socket.A1): only plugged modules are listed.
A failed one is not recorded: DMTF Memory v1_12, Status.Health; it stays Enabled and reports its size.
"""

from __future__ import annotations

from collections.abc import Iterator

from clusterctl_lab.emulators.redfish import health
from clusterctl_lab.emulators.redfish.dell import paths
from clusterctl_lab.emulators.redfish.resource import Resource, collection, head, ref, refs, status
from clusterctl_lab.emulators.redfish.view import View
from clusterctl_lab.machine import Dimm, Gpu


def resources(view: View) -> Iterator[Resource]:
    """Return all of these resources."""
    yield from _processors_resources(view)
    yield from _memory_resources(view)


PROCESSORS = f"{paths.SYSTEM}/Processors"
CPU_MODEL = "Intel(R) Xeon(R) Platinum 8468"
THREADS_PER_CORE = 2


def _processors_resources(view: View) -> Iterator[Resource]:
    machine = view.machine
    cpus = [_cpu(fqdd, machine.cores // machine.cpus) for fqdd in paths.cpu_fqdds(machine)]
    processors = [*(_gpu(gpu) for gpu in machine.gpus), *cpus]
    members = [processor["@odata.id"] for processor in processors]
    yield collection(PROCESSORS, "ProcessorCollection", "ProcessorsCollection", members)
    yield from processors


def _cpu(fqdd: str, cores: int) -> Resource:
    return {
        **head(f"{PROCESSORS}/{fqdd}", "Processor.v1_12_0.Processor", f"CPU {fqdd.rsplit('.', 1)[-1]}"),
        "Description": "Represents the properties of a Processor attached to this System",
        "InstructionSet": "x86-64",
        "Links": {"Chassis": ref(paths.CHASSIS)},
        "Manufacturer": "Intel",
        "Model": CPU_MODEL,
        "ProcessorArchitecture": "x86",
        "ProcessorType": "CPU",
        "Socket": fqdd,
        "Status": status(),
        "TotalCores": cores,
        "TotalEnabledCores": cores,
        "TotalThreads": cores * THREADS_PER_CORE,
    }


def _gpu(gpu: Gpu) -> Resource:
    fqdd = paths.gpu_fqdd(gpu)
    device = f"{paths.SYSTEM}/PCIeDevices/{paths.pcie_id(gpu.pci)}"
    return {
        **head(f"{PROCESSORS}/{fqdd}", "Processor.v1_12_0.Processor", fqdd),
        "Description": "Represents the properties of the GPU attached to this System",
        "Links": {
            "Chassis": ref(paths.CHASSIS),
            "PCIeDevice": ref(device),
            "PCIeFunctions": [ref(f"{device}/PCIeFunctions/{paths.pcie_id(gpu.pci)}-0")],
        },
        "Manufacturer": "NVIDIA Corporation",
        "Model": gpu.model,
        "ProcessorType": "GPU",
        "SerialNumber": gpu.serial,
        "Status": status(),
    }


def _memory_resources(view: View) -> Iterator[Resource]:
    dimms = [_dimm(dimm) for dimm in view.machine.dimms]
    members = [dimm["@odata.id"] for dimm in dimms]
    yield {
        **collection(paths.MEMORY, "MemoryCollection", "Memory Devices Collection", members),
        "Description": "Collection of memory devices for this system",
    }
    yield from dimms


def _dimm(dimm: Dimm) -> Resource:
    """`DIMM A1` belongs to the first CPU and has the id DIMM.Socket.A1."""
    socket = dimm.slot.removeprefix("DIMM ")
    cpu = "AB".index(socket[0]) + 1
    return {
        **head(f"{paths.MEMORY}/DIMM.Socket.{socket}", "Memory.v1_12_0.Memory", dimm.slot),
        "BusWidthBits": 72,
        "CapacityMiB": dimm.size_mib,
        "DataWidthBits": 64,
        "Description": dimm.slot,
        "DeviceLocator": dimm.slot,
        "ErrorCorrection": "MultiBitECC",
        "Links": {"Chassis": ref(paths.CHASSIS), **refs("Processors", [f"{PROCESSORS}/CPU.Socket.{cpu}"])},
        "Manufacturer": "Samsung",
        "MemoryDeviceType": "DDR5",
        "MemoryType": "DRAM",
        "OperatingSpeedMhz": 4800,
        "PartNumber": "M321RAGA0B20-CWK",
        "RankCount": 4,
        "SerialNumber": dimm.serial,
        "Status": status(health.of_dimm(dimm)),
        "VolatileSizeMiB": dimm.size_mib,
    }
