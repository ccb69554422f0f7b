"""The machine: Chassis/1, CPUs (Systems/1/Processors/1) and memory modules (Systems/1/Memory/1 to 32).

The server and the HGX baseboard in it; recorded at Chassis/1 and Chassis/UBB_1.

CPUs; recorded at Systems/1/Processors/1. GPUs are not among them (`pcie.py`).

Memory modules; recorded at Systems/1/Memory/1 to 32, by number; here every second socket is empty and not listed.
A failed one is not recorded: DMTF Memory v1_11, Status.Health; it stays Enabled, and its size is reported.
"""

from __future__ import annotations

from collections.abc import Iterator

from clusterctl_lab.emulators.redfish import health
from clusterctl_lab.emulators.redfish.resource import Resource, collection, head, ref
from clusterctl_lab.emulators.redfish.supermicro import identity, paths
from clusterctl_lab.emulators.redfish.view import View
from clusterctl_lab.machine import Dimm


def resources(view: View) -> Iterator[Resource]:
    """Return all of these resources."""
    yield from _chassis_resources(view)
    yield from _processors_resources(view)
    yield from _memory_resources(view)


def _chassis_resources(view: View) -> Iterator[Resource]:
    members = [paths.CHASSIS, paths.BASEBOARD, *paths.backplanes(view.machine)]
    yield collection(f"{paths.ROOT}/Chassis", "ChassisCollection", "Chassis Collection", members)
    yield _server(view)
    yield {
        **head(paths.BASEBOARD, "Chassis.v1_11_0.Chassis", "GPU Baseboard"),
        "ChassisType": "Zone",
        "Manufacturer": "NVIDIA",
        "Model": "HGX_H100",
        "SerialNumber": identity.baseboard_serial(view.machine),
        "PartNumber": "935-24287-0000-000",
    }


def _server(view: View) -> Resource:
    machine = view.machine
    worst = health.rollups(machine).system
    return {
        **head(paths.CHASSIS, "Chassis.v1_14_0.Chassis", "Computer System Chassis"),
        "ChassisType": "RackMount",
        "Manufacturer": machine.manufacturer,
        "Model": "X13DEG-OAD",
        "SerialNumber": identity.chassis_serial(machine),
        "PartNumber": "CSE-GP801TS-R000NPF",
        "AssetTag": None,
        "PowerState": "On" if view.power else "Off",
        "Status": {"State": "Enabled", "Health": worst, "HealthRollup": worst},
        "Power": ref(f"{paths.CHASSIS}/Power"),
        "PCIeDevices": ref(paths.PCIE_DEVICES),
        "Thermal": ref(f"{paths.CHASSIS}/Thermal"),
        "NetworkAdapters": ref(paths.ADAPTERS),
        "Links": {
            "ComputerSystems": [ref(paths.SYSTEM)],
            "ManagedBy": [ref(paths.MANAGER)],
            "ManagersInChassis": [ref(paths.MANAGER)],
        },
        "Oem": {
            "Supermicro": {
                "@odata.type": "#SmcChassisExtensions.v1_0_0.Chassis",
                "BoardSerialNumber": identity.board_serial(machine),
                "BoardID": "0x1d14",
            }
        },
    }


PROCESSORS = f"{paths.SYSTEM}/Processors"
MODEL = "Intel(R) Xeon(R) Platinum 8468"
_THREADS_PER_CORE = 2


def _processors_resources(view: View) -> Iterator[Resource]:
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


def _memory_resources(view: View) -> Iterator[Resource]:
    dimms = [_dimm(dimm) for dimm in view.machine.dimms]
    members = [dimm["@odata.id"] for dimm in dimms]
    yield {
        **collection(paths.MEMORY, "MemoryCollection", "Memory Collection", members),
        "Description": "Memory Collection",
    }
    yield from dimms


def _dimm(dimm: Dimm) -> Resource:
    """`P1-DIMMB1` is the third socket: two on each of eight channels of each CPU, counted from 1."""
    cpu, name = dimm.slot.removeprefix("P").split("-DIMM")
    socket, channel, slot = int(cpu) - 1, "ABCDEFGH".index(name[0]), int(name[1:]) - 1
    return {
        **head(f"{paths.MEMORY}/{16 * socket + 2 * channel + slot + 1}", "Memory.v1_11_0.Memory", "Memory"),
        "BaseModuleType": "RDIMM",
        "BusWidthBits": 80,
        "CapacityMiB": dimm.size_mib,
        "DataWidthBits": 64,
        "DeviceLocator": dimm.slot,
        "ErrorCorrection": "SingleBitECC",
        "Location": {"PartLocation": {"ServiceLabel": dimm.slot, "LocationType": "Slot"}},
        "MemoryMedia": ["DRAM"],
        "MemoryType": "DRAM",
        "MemoryDeviceType": "DDR5",
        "Manufacturer": "Samsung",
        "MemoryLocation": {
            "MemoryController": channel // 2,
            "Socket": socket,
            "Channel": channel,
            "Slot": slot,
        },
        "OperatingSpeedMhz": 4800,
        "PartNumber": "M321RAGA0B20-CWK",
        "RankCount": 4,
        "SerialNumber": dimm.serial,
        "Status": {"State": "Enabled", "Health": health.of_dimm(dimm)},
    }
