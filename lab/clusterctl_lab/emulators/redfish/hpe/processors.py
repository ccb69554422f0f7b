"""CPUs; recorded at Systems/1/Processors/1, its model padded with blanks."""

from __future__ import annotations

from collections.abc import Iterator

from clusterctl_lab.emulators.redfish.hpe import paths
from clusterctl_lab.emulators.redfish.resource import Resource, collection, head
from clusterctl_lab.emulators.redfish.view import View

PROCESSORS = f"{paths.SYSTEM}/Processors"
MODEL = "AMD EPYC 7763 64-Core Processor                "
_THREADS_PER_CORE = 2


def resources(view: View) -> Iterator[Resource]:
    machine = view.machine
    members = [f"{PROCESSORS}/{number}" for number in range(1, machine.cpus + 1)]
    yield collection(PROCESSORS, "ProcessorCollection", "Processors Collection", members)
    cores = machine.cores // machine.cpus
    for number, path in enumerate(members, start=1):
        yield {
            **head(path, "Processor.v1_7_2.Processor", "Processors"),
            "InstructionSet": "x86-64",
            "Manufacturer": "Advanced Micro Devices, Inc.",
            "Model": MODEL,
            "ProcessorArchitecture": "x86",
            "ProcessorType": "CPU",
            "Socket": f"Proc {number}",
            "Status": {"Health": "OK", "State": "Enabled"},
            "TotalCores": cores,
            "TotalThreads": cores * _THREADS_PER_CORE,
        }
