"""Drives; recorded at Systems/1/Storage: each NVMe drive is a storage with one drive (DA00001C has failed)."""

from __future__ import annotations

from collections.abc import Iterator

from clusterctl_lab.emulators.redfish import health
from clusterctl_lab.emulators.redfish.hpe import paths
from clusterctl_lab.emulators.redfish.resource import Resource, collection, head, ref
from clusterctl_lab.emulators.redfish.view import View
from clusterctl_lab.machine import Drive, Machine

_ALL = f"{paths.SYSTEM}/Storage"


def resources(view: View) -> Iterator[Resource]:
    machine = view.machine
    members = [paths.storage(machine, drive) for drive in machine.drives]
    yield collection(_ALL, "StorageCollection", "Storage", members)
    for drive in machine.drives:
        yield _storage(machine, drive)
        yield _drive(machine, drive)


def _status(drive: Drive) -> Resource:
    return {"Health": health.of_drive(drive), "State": "Enabled"}


def _storage(machine: Machine, drive: Drive) -> Resource:
    return {
        **head(paths.storage(machine, drive), "Storage.v1_12_0.Storage", "NVMe Storage System"),
        "Drives": [ref(paths.drive(machine, drive))],
        "Links": {"Enclosures": [ref(paths.CHASSIS)]},
        "Status": _status(drive),
    }


def _drive(machine: Machine, drive: Drive) -> Resource:
    """`slot` is the place that HPE prints with it: `Box 2:Bay 5`."""
    box, bay = (part.rsplit(" ", 1)[-1] for part in drive.slot.split(":"))
    return {
        **head(paths.drive(machine, drive), "Drive.v1_7_0.Drive", "Secondary Storage Device"),
        "CapacityBytes": drive.size_bytes,
        "FailurePredicted": drive.failed,
        "Location": [{"Info": f"{box}:{bay}", "InfoFormat": "Box:Bay"}],
        "MediaType": "SSD",
        "Model": drive.model,
        "Oem": {
            "Hpe": {
                "@odata.context": "/redfish/v1/$metadata#HpeiLODriveExt.HpeiLODriveExt",
                "@odata.type": "#HpeiLODriveExt.v2_0_1.HpeiLODriveExt",
                "DriveStatus": _status(drive),
                "WearStatus": "OK",
            }
        },
        "PhysicalLocation": {
            "PartLocation": {"LocationOrdinalValue": int(bay), "LocationType": "Bay", "ServiceLabel": drive.slot}
        },
        "Protocol": "NVMe",
        "SerialNumber": drive.serial,
        "Status": _status(drive),
    }
