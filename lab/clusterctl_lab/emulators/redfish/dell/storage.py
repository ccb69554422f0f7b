"""Storage controllers and drives; recorded at Systems/System.Embedded.1/Storage (CPU.1, AHCI.Embedded.1-1).

NVMe drives have no durable name there: the serial number is the only key. A failed drive follows the one recorded at an
HPE DL385 (Storage/DA00001C): Critical, with its failure predicted, and otherwise unchanged.
"""

from __future__ import annotations

from collections.abc import Iterator

from clusterctl_lab.emulators.redfish import health
from clusterctl_lab.emulators.redfish.dell import paths
from clusterctl_lab.emulators.redfish.resource import Resource, collection, counted, head, ref, refs, status
from clusterctl_lab.emulators.redfish.view import View
from clusterctl_lab.machine import Drive


def resources(view: View) -> Iterator[Resource]:
    controllers: dict[str, list[Drive]] = {}
    for drive in view.machine.drives:
        controllers.setdefault(paths.storage(drive), []).append(drive)
    yield collection(f"{paths.SYSTEM}/Storage", "StorageCollection", "Storage Collection", controllers)
    for path, drives in controllers.items():
        yield _controller(path, drives)
        for drive in drives:
            yield _drive(drive)


def _controller(path: str, drives: list[Drive]) -> Resource:
    fqdd = path.rsplit("/", 1)[-1]
    return {
        **head(path, "Storage.v1_10_1.Storage", fqdd),
        "Description": fqdd,
        **refs("Drives", [paths.drive(drive) for drive in drives]),
        "Links": refs("Enclosures", sorted({_enclosure(drive) for drive in drives})),
        "Status": status(rollup=health.of_drives(drives)),
    }


def _drive(drive: Drive) -> Resource:
    nvme = _in_bay(drive)
    return {
        **head(paths.drive(drive), "Drive.v1_12_1.Drive", drive.slot),
        "CapacityBytes": drive.size_bytes,
        "Description": drive.slot,
        "FailurePredicted": drive.failed,
        **counted("Identifiers", [{"DurableName": None, "DurableNameFormat": None}]),
        "Links": {"Chassis": ref(_enclosure(drive))},
        "MediaType": "SSD",
        "Model": drive.model,
        "Protocol": "PCIe" if nvme else "SATA",
        "RotationSpeedRPM": None,
        "SerialNumber": drive.serial,
        "Status": status(health.of_drive(drive), rollup=True),
    }


def _in_bay(drive: Drive) -> bool:
    return paths.storage_fqdd(drive) == "CPU.1"


def _enclosure(drive: Drive) -> str:
    return paths.ENCLOSURE if _in_bay(drive) else paths.CHASSIS
