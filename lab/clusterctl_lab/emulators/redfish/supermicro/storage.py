"""Drives; recorded at Systems/1/Storage/NVMeSSD and Chassis/NVMeSSD.0.Group.0.StorageBackplane.

The backplane's collection of drives is empty, as recorded: only links lead to them. A failed drive follows the one
recorded at an HPE DL385, in the properties that are recorded here.
"""

from __future__ import annotations

from collections.abc import Iterator

from clusterctl_lab.emulators.redfish import health
from clusterctl_lab.emulators.redfish.resource import Resource, collection, head, ref
from clusterctl_lab.emulators.redfish.supermicro import paths
from clusterctl_lab.emulators.redfish.view import View
from clusterctl_lab.machine import Drive

_ALL = f"{paths.SYSTEM}/Storage"


def resources(view: View) -> Iterator[Resource]:
    drives = view.machine.drives
    yield collection(_ALL, "StorageCollection", "Storage Collection", [paths.STORAGE])
    yield {
        **head(paths.STORAGE, "Storage.v1_9_0.Storage", "NVMe Storage System"),
        "Description": "NVMe SSD",
        "Drives": [ref(paths.drive(drive)) for drive in drives],
        "Links": {"Enclosures": [ref(path) for path in paths.backplanes(view.machine)]},
        "Status": {"State": "Enabled", "Health": health.of_drives(drives)},
    }
    for path, inside in paths.backplanes(view.machine).items():
        yield _backplane(path, inside)
        yield collection(f"{path}/Drives", "DriveCollection", "Drive Collection", [])
    yield from (_drive(drive) for drive in drives)


def _backplane(path: str, drives: list[Drive]) -> Resource:
    return {
        **head(path, "Chassis.v1_14_0.Chassis", "Backplane"),
        "ChassisType": "Enclosure",
        "Model": "Backplane",
        "SerialNumber": None,
        "PartNumber": None,
        "Links": {
            "ManagedBy": [ref(paths.MANAGER)],
            "Storage": [ref(paths.STORAGE)],
            "Drives": [ref(paths.drive(drive)) for drive in drives],
        },
        "Drives": ref(f"{path}/Drives"),
    }


def _drive(drive: Drive) -> Resource:
    return {
        **head(paths.drive(drive), "Drive.v1_11_1.Drive", drive.slot),
        "Manufacturer": drive.model.split(" ", maxsplit=1)[0],
        "SerialNumber": drive.serial,
        "Model": drive.model,
        "Revision": "GDC5602Q",
        "StatusIndicator": "Fail" if drive.failed else "OK",
        "FailurePredicted": drive.failed,
        "CapacityBytes": drive.size_bytes,
        "Oem": {"Supermicro": {"@odata.type": "#SmcDriveExtensions.v1_0_0.Drive", "DriveFunctional": not drive.failed}},
        "Status": {"State": "Enabled", "Health": health.of_drive(drive)},
        "Links": {"Volumes": []},
    }
