"""The machine: chassis, memory modules and drives.

The DGX itself; recorded at Chassis/DGX.

Memory modules; recorded at Systems/DGX/Memory (DevType2_DIMM0 to 31): without DeviceLocator and label.
Here every second socket is empty and not listed. A failed one is not recorded: DMTF Memory v1_8, Status.Health.

Drives; recorded at Systems/DGX/Storage/StorageUnit_0, by their names only: their properties are those of the DMTF's
Storage v1_9 and Drive v1_11 schemas. A failed drive follows the one recorded at an HPE DL385.
"""

from __future__ import annotations

from collections.abc import Iterator

from clusterctl_lab.emulators.redfish import health
from clusterctl_lab.emulators.redfish.openbmc import identity, paths
from clusterctl_lab.emulators.redfish.resource import Resource, collection, head, ref, refs
from clusterctl_lab.emulators.redfish.view import View
from clusterctl_lab.machine import Dimm


def resources(view: View) -> Iterator[Resource]:
    """Return all of these resources."""
    yield from _chassis_resources(view)
    yield from _memory_resources(view)
    yield from _storage_resources(view)


def _chassis_resources(view: View) -> Iterator[Resource]:
    machine = view.machine
    modules = [paths.gpu_chassis(gpu) for gpu in machine.gpus]
    members = [paths.CHASSIS, paths.HGX_CHASSIS, *modules]
    yield collection(f"{paths.ROOT}/Chassis", "ChassisCollection", "Chassis Collection", members)
    worst = health.rollups(machine).system
    yield {
        **head(paths.CHASSIS, "Chassis.v1_15_0.Chassis", "High Level Chassis"),
        "AssetTag": "Default string",
        "ChassisType": "Other",
        "Description": "High Level Chassis instance",
        "Links": {
            **refs("ComputerSystems", [paths.SYSTEM]),
            **refs("Drives", [paths.drive(machine, drive) for drive in machine.drives]),
            **refs("ManagedBy", [paths.MANAGER]),
        },
        "Manufacturer": machine.manufacturer,
        "Model": machine.model,
        "NetworkAdapters": ref(paths.ADAPTERS),
        "PartNumber": "965-24387-0002-000",
        "Power": ref(f"{paths.CHASSIS}/Power"),
        "PowerState": "On" if view.power else "Off",
        "PowerSubsystem": ref(f"{paths.CHASSIS}/PowerSubsystem"),
        "SKU": "920-24387-2540-000",
        "SerialNumber": identity.chassis_serial(machine),
        "Status": {"Health": worst, "HealthRollup": worst, "State": "Enabled"},
        "Thermal": ref(f"{paths.CHASSIS}/Thermal"),
    }


_SOCKETS = 16
"""Of each CPU: two on each channel, two channels on each controller."""


def _memory_resources(view: View) -> Iterator[Resource]:
    dimms = [_dimm(dimm) for dimm in view.machine.dimms]
    members = [dimm["@odata.id"] for dimm in dimms]
    yield {
        **collection(paths.MEMORY, "MemoryCollection", "Memory Collection", members),
        "Description": "Collection of Memories for this system",
    }
    yield from dimms


def _dimm(dimm: Dimm) -> Resource:
    cpu, socket = divmod(int(dimm.slot.removeprefix("DevType2_DIMM")), _SOCKETS)
    return {
        **head(f"{paths.MEMORY}/{dimm.slot}", "Memory.v1_8_0.Memory", dimm.slot),
        "BaseModuleType": "RDIMM",
        "BusWidthBits": 80,
        "CapacityMiB": dimm.size_mib,
        "DataWidthBits": 64,
        "Links": {"Chassis": ref(paths.CHASSIS)},
        "Manufacturer": "Samsung",
        "MemoryLocation": {"Channel": socket // 2, "MemoryController": socket // 4, "Slot": socket % 2, "Socket": cpu},
        "MemoryMedia": ["DRAM"],
        "MemoryType": "DRAM",
        "OperatingMemoryModes": ["Volatile"],
        "OperatingSpeedMhz": 4400,
        "PartNumber": "M321RAGA0B20-CWK ",
        "RankCount": 4,
        "SerialNumber": dimm.serial,
        "Status": {"Health": health.of_dimm(dimm), "State": "Enabled"},
        "VolatileSizeMiB": dimm.size_mib,
    }


_ALL = f"{paths.SYSTEM}/Storage"


def _storage_resources(view: View) -> Iterator[Resource]:
    machine = view.machine
    members = [paths.drive(machine, drive) for drive in machine.drives]
    yield collection(_ALL, "StorageCollection", "Storage Collection", [paths.STORAGE])
    yield {
        **head(paths.STORAGE, "Storage.v1_9_0.Storage", "StorageUnit_0"),
        **refs("Drives", members),
        "Status": {"Health": health.of_drives(machine.drives), "State": "Enabled"},
    }
    for path, drive in zip(members, machine.drives, strict=True):
        yield {
            **head(path, "Drive.v1_11_0.Drive", path.rsplit("/", 1)[-1]),
            "CapacityBytes": drive.size_bytes,
            "FailurePredicted": drive.failed,
            "Links": {"Chassis": ref(paths.CHASSIS)},
            "MediaType": "SSD",
            "Model": drive.model,
            "PhysicalLocation": {"PartLocation": {"LocationType": "Bay", "ServiceLabel": drive.slot}},
            "Protocol": "NVMe",
            "SerialNumber": drive.serial,
            "Status": {"Health": health.of_drive(drive), "State": "Enabled"},
        }
