"""Memory modules; recorded at Systems/1/Memory/1 to 32, by number; here every second socket is empty and not listed.

A failed one is not recorded: DMTF Memory v1_11, Status.Health; it stays Enabled, and its size is reported.
"""

from __future__ import annotations

from collections.abc import Iterator

from clusterctl_lab.emulators.redfish import health
from clusterctl_lab.emulators.redfish.resource import Resource, collection, head
from clusterctl_lab.emulators.redfish.supermicro import paths
from clusterctl_lab.emulators.redfish.view import View
from clusterctl_lab.machine import Dimm


def resources(view: View) -> Iterator[Resource]:
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
