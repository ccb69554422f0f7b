"""Memory modules; recorded at Systems/DGX/Memory (DevType2_DIMM0 to 31): without DeviceLocator and label.

Here every second socket is empty and not listed. A failed one is not recorded: DMTF Memory v1_8, Status.Health.
"""

from __future__ import annotations

from collections.abc import Iterator

from clusterctl_lab.emulators.redfish import health
from clusterctl_lab.emulators.redfish.openbmc import paths
from clusterctl_lab.emulators.redfish.resource import Resource, collection, head, ref
from clusterctl_lab.emulators.redfish.view import View
from clusterctl_lab.machine import Dimm

_SOCKETS = 16
"""Of each CPU: two on each channel, two channels on each controller."""


def resources(view: View) -> Iterator[Resource]:
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
