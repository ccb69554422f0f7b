"""Drives; recorded at Systems/DGX/Storage/StorageUnit_0, by their names only: their properties are those of the DMTF's
Storage v1_9 and Drive v1_11 schemas. A failed drive follows the one recorded at an HPE DL385.
"""

from __future__ import annotations

from collections.abc import Iterator

from clusterctl_lab.emulators.redfish import health
from clusterctl_lab.emulators.redfish.openbmc import paths
from clusterctl_lab.emulators.redfish.resource import Resource, collection, head, ref, refs
from clusterctl_lab.emulators.redfish.view import View

_ALL = f"{paths.SYSTEM}/Storage"


def resources(view: View) -> Iterator[Resource]:
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
