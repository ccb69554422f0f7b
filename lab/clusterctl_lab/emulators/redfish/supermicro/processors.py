"""CPUs; recorded at Systems/1/Processors/1. GPUs are not among them (`pcie.py`)."""

from __future__ import annotations

from collections.abc import Iterator

from clusterctl_lab.emulators.redfish.resource import Resource, collection, head
from clusterctl_lab.emulators.redfish.supermicro import paths
from clusterctl_lab.emulators.redfish.view import View

PROCESSORS = f"{paths.SYSTEM}/Processors"
MODEL = "Intel(R) Xeon(R) Platinum 8468"
_THREADS_PER_CORE = 2


def resources(view: View) -> Iterator[Resource]:
    machine = view.machine
    numbers = range(1, machine.cpus + 1)
    members = [f"{PROCESSORS}/{number}" for number in numbers]
    yield collection(PROCESSORS, "ProcessorCollection", "Processors Collection", members)
    for number, path in zip(numbers, members, strict=True):
        yield _cpu(path, number, machine.cores // machine.cpus)


def _cpu(path: str, number: int, cores: int) -> Resource:
    return {
        **head(path, "Processor.v1_10_0.Processor", "Processor"),
        "InstructionSet": "x86-64",
        "Manufacturer": "Intel(R) Corporation",
        "SerialNumber": None,
        "Model": MODEL,
        "ProcessorArchitecture": "x86",
        "ProcessorType": "CPU",
        "Socket": f"CPU{number}",
        "TotalCores": cores,
        "TotalThreads": cores * _THREADS_PER_CORE,
        "Location": {
            "PartLocation": {
                "ServiceLabel": f"CPU {number}",
                "LocationType": "Socket",
                "LocationOrdinalValue": number - 1,
            }
        },
        "Status": {"State": "Enabled", "Health": "OK"},
    }
