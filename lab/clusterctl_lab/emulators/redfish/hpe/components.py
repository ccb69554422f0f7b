"""The machine: chassis, CPUs and memory modules.

The server; recorded at Chassis/1.

CPUs; recorded at Systems/1/Processors/1, its model padded with blanks.

Memory modules; recorded at Systems/1/Memory (proc1dimm1; proc1dimm2 is an empty socket, and listed as Absent).
A failed one is not recorded: DMTF Memory v1_7, Status.Health; HpeMemoryExt v2_5, DIMMStatus: Degraded.
"""

from __future__ import annotations

from collections.abc import Iterator

from clusterctl_lab.emulators.redfish import health
from clusterctl_lab.emulators.redfish.hpe import identity, paths
from clusterctl_lab.emulators.redfish.resource import Resource, collection, head, ref
from clusterctl_lab.emulators.redfish.view import View
from clusterctl_lab.machine import Dimm


def resources(view: View) -> Iterator[Resource]:
    """Return all of these resources."""
    yield from _chassis_resources(view)
    yield from _processors_resources(view)
    yield from _memory_resources(view)


def _chassis_resources(view: View) -> Iterator[Resource]:
    machine = view.machine
    yield collection(f"{paths.ROOT}/Chassis", "ChassisCollection", "Computer System Chassis", [paths.CHASSIS])
    yield {
        **head(paths.CHASSIS, "Chassis.v1_11_2.Chassis", "Computer System Chassis"),
        "AssetTag": "",
        "ChassisType": "RackMount",
        "Links": {
            "ManagedBy": [ref(paths.MANAGER)],
            "ComputerSystems": [ref(paths.SYSTEM)],
            "Drives": [ref(paths.drive(machine, drive)) for drive in machine.drives],
        },
        "Manufacturer": machine.manufacturer,
        "Model": machine.model,
        "NetworkAdapters": ref(paths.ADAPTERS),
        "PCIeDevices": ref(paths.PCIE_DEVICES),
        "Power": ref(f"{paths.CHASSIS}/Power"),
        "PowerState": "On" if view.power else "Off",
        "SKU": identity.PRODUCT,
        "SerialNumber": machine.serial,
        "Status": {"Health": health.rollups(machine).system, "State": "Enabled"},
        "Thermal": ref(f"{paths.CHASSIS}/Thermal"),
    }


PROCESSORS = f"{paths.SYSTEM}/Processors"
MODEL = "AMD EPYC 7763 64-Core Processor                "
_THREADS_PER_CORE = 2


def _processors_resources(view: View) -> Iterator[Resource]:
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


_SOCKETS = 16
"""Of each CPU."""


def _memory_resources(view: View) -> Iterator[Resource]:
    machine = view.machine
    filled = {dimm.slot: dimm for dimm in machine.dimms}
    sockets = [(cpu, number) for cpu in range(1, machine.cpus + 1) for number in range(1, _SOCKETS + 1)]
    found = [_socket(*socket, filled.get("PROC {} DIMM {}".format(*socket))) for socket in sockets]
    members = [socket["@odata.id"] for socket in found]
    yield {
        **collection(paths.MEMORY, "MemoryCollection", "Memory DIMM Collection", members),
        "Description": "Memory DIMM Collection",
    }
    yield from found


def _socket(cpu: int, number: int, dimm: Dimm | None) -> Resource:
    name = f"proc{cpu}dimm{number}"
    size = dimm.size_mib if dimm else 0
    return {
        **head(f"{paths.MEMORY}/{name}", "Memory.v1_7_1.Memory", name),
        "BusWidthBits": 72,
        "CapacityMiB": size,
        "DataWidthBits": 64,
        "DeviceLocator": f"PROC {cpu} DIMM {number}",
        "ErrorCorrection": "MultiBitECC",
        "MemoryLocation": {"Slot": number, "Socket": cpu},
        "MemoryMedia": ["DRAM"],
        "MemoryType": "DRAM",
        "Oem": {
            "Hpe": {
                "@odata.context": "/redfish/v1/$metadata#HpeMemoryExt.HpeMemoryExt",
                "@odata.type": "#HpeMemoryExt.v2_5_0.HpeMemoryExt",
                "DIMMStatus": _dimm_status(dimm),
            }
        },
        "OperatingMemoryModes": ["Volatile"],
        **(_module(dimm) if dimm else {"RankCount": None, "Status": {"Health": "OK", "State": "Absent"}}),
        "VolatileSizeMiB": size,
    }


def _module(dimm: Dimm) -> Resource:
    return {
        "BaseModuleType": "RDIMM",
        "Manufacturer": "Samsung",
        "MemoryDeviceType": "DDR4",
        "OperatingSpeedMhz": 3200,
        "PartNumber": "M393AAG40M32-CAE",
        "RankCount": 4,
        "SerialNumber": dimm.serial,
        "Status": {"Health": health.of_dimm(dimm), "State": "Enabled"},
    }


def _dimm_status(dimm: Dimm | None) -> str:
    if dimm is None:
        return "NotPresent"
    return "Degraded" if dimm.failed else "GoodInUse"
