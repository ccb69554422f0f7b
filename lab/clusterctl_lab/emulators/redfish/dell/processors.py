"""CPUs and GPUs; recorded at Systems/System.Embedded.1/Processors (CPU.Socket.1, Video.Slot.2-1)."""

from __future__ import annotations

from collections.abc import Iterator

from clusterctl_lab.emulators.redfish.dell import paths
from clusterctl_lab.emulators.redfish.resource import Resource, collection, head, ref, status
from clusterctl_lab.emulators.redfish.view import View
from clusterctl_lab.machine import Gpu

PROCESSORS = f"{paths.SYSTEM}/Processors"
CPU_MODEL = "Intel(R) Xeon(R) Platinum 8468"
THREADS_PER_CORE = 2


def resources(view: View) -> Iterator[Resource]:
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
