"""Memory modules; recorded at Systems/System.Embedded.1/Memory (DIMM.Socket.A1): only plugged modules are listed.

A failed one is not recorded: DMTF Memory v1_12, Status.Health; it stays Enabled and reports its size.
"""

from __future__ import annotations

from collections.abc import Iterator

from clusterctl_lab.emulators.redfish import health
from clusterctl_lab.emulators.redfish.dell import paths
from clusterctl_lab.emulators.redfish.dell.processors import PROCESSORS
from clusterctl_lab.emulators.redfish.resource import Resource, collection, head, ref, refs, status
from clusterctl_lab.emulators.redfish.view import View
from clusterctl_lab.machine import Dimm


def resources(view: View) -> Iterator[Resource]:
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
