"""Where a Supermicro BMC keeps its resources."""

from __future__ import annotations

from clusterctl_lab.machine import Drive, Gpu, Hca, Machine

ROOT = "/redfish/v1"
SYSTEM = f"{ROOT}/Systems/1"
BOOT_CERTIFICATES = f"{SYSTEM}/Boot/Certificates"
MEMORY = f"{SYSTEM}/Memory"
CHASSIS = f"{ROOT}/Chassis/1"
BASEBOARD = f"{ROOT}/Chassis/UBB_1"
MANAGER = f"{ROOT}/Managers/1"
HEALTH_LOG = f"{SYSTEM}/LogServices/Log1"
MAINTENANCE_LOG = f"{MANAGER}/LogServices/Log1"
UPDATE_SERVICE = f"{ROOT}/UpdateService"
FIRMWARE = f"{UPDATE_SERVICE}/FirmwareInventory"
ADAPTERS = f"{CHASSIS}/NetworkAdapters"
PCIE_DEVICES = f"{CHASSIS}/PCIeDevices"
STORAGE = f"{SYSTEM}/Storage/NVMeSSD"
ONBOARD = 9
"""The number of the Ethernet card, after the eight HCAs (recorded: NetworkAdapters/9, an AOC-STGS-i2T)."""


def gpu(part: Gpu) -> str:
    return f"{PCIE_DEVICES}/GPU{part.index + 1}"


def adapter(number: int) -> str:
    return f"{ADAPTERS}/{number}"


def hca_number(hca: Hca) -> int:
    """The adapter's number, which is its slot's as well."""
    return hca.rail + 1


def backplane(drive: Drive) -> str:
    """Data drives sit in group 0, the boot drive in group 1."""
    return f"{ROOT}/Chassis/NVMeSSD.0.Group.{int(drive.boot)}.StorageBackplane"


def drive(part: Drive) -> str:
    return f"{backplane(part)}/Drives/{part.slot}"


def backplanes(machine: Machine) -> dict[str, list[Drive]]:
    """The drives in each."""
    found: dict[str, list[Drive]] = {}
    for part in machine.drives:
        found.setdefault(backplane(part), []).append(part)
    return found
