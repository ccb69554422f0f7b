"""The resource paths of an iLO 5."""

from __future__ import annotations

from clusterctl_lab.machine import Drive, Gpu, Hca, Machine

ROOT = "/redfish/v1"
SYSTEM = f"{ROOT}/Systems/1"
MEMORY = f"{SYSTEM}/Memory"
CHASSIS = f"{ROOT}/Chassis/1"
MANAGER = f"{ROOT}/Managers/1"
IML = f"{SYSTEM}/LogServices/IML"
IEL = f"{MANAGER}/LogServices/IEL"
UPDATE_SERVICE = f"{ROOT}/UpdateService"
FIRMWARE = f"{UPDATE_SERVICE}/FirmwareInventory"
ADAPTERS = f"{CHASSIS}/NetworkAdapters"
PCIE_DEVICES = f"{CHASSIS}/PCIeDevices"
_FIRST_GPU, _FIRST_HCA = 201, 211
"""Ids of PCIe devices are plain numbers (recorded: 222 to 227); these are ours."""


def gpu(part: Gpu) -> str:
    return f"{PCIE_DEVICES}/{_FIRST_GPU + part.index}"


def hca_device(part: Hca) -> str:
    return f"{PCIE_DEVICES}/{_FIRST_HCA + part.rail}"


def adapter(part: Hca) -> str:
    """Named after where it sits, as recorded: DE080000, DE083000."""
    return f"{ADAPTERS}/DE{0x08 + part.rail:02X}0000"


def storage_id(machine: Machine, part: Drive) -> str:
    """`DA000000` and up."""
    return f"DA{machine.drives.index(part):06X}"


def storage(machine: Machine, part: Drive) -> str:
    return f"{SYSTEM}/Storage/{storage_id(machine, part)}"


def drive(machine: Machine, part: Drive) -> str:
    return f"{storage(machine, part)}/Drives/{storage_id(machine, part)}"
