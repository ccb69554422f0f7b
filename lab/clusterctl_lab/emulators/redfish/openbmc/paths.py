"""Where a DGX's BMC keeps its resources."""

from __future__ import annotations

from clusterctl_lab.machine import Drive, Gpu, Machine

ROOT = "/redfish/v1"
SYSTEM = f"{ROOT}/Systems/DGX"
SETTINGS = f"{SYSTEM}/SD"
MEMORY = f"{SYSTEM}/Memory"
CHASSIS = f"{ROOT}/Chassis/DGX"
MANAGER = f"{ROOT}/Managers/BMC"
HGX_SYSTEM = f"{ROOT}/Systems/HGX_Baseboard_0"
HGX_CHASSIS = f"{ROOT}/Chassis/HGX_Chassis_0"
HGX_MANAGER = f"{ROOT}/Managers/HGX_BMC_0"
SEL = f"{MANAGER}/LogServices/SEL"
AUDIT_LOG = f"{MANAGER}/LogServices/AuditLog"
UPDATE_SERVICE = f"{ROOT}/UpdateService"
FIRMWARE = f"{UPDATE_SERVICE}/FirmwareInventory"
ADAPTERS = f"{CHASSIS}/NetworkAdapters"
STORAGE = f"{SYSTEM}/Storage/StorageUnit_0"


def gpu_name(gpu: Gpu) -> str:
    """As printed on the board, from 1: `GPU_SXM_1`."""
    return f"GPU_SXM_{gpu.index + 1}"


def gpu(part: Gpu) -> str:
    return f"{HGX_SYSTEM}/Processors/{gpu_name(part)}"


def gpu_chassis(part: Gpu) -> str:
    return f"{ROOT}/Chassis/HGX_{gpu_name(part)}"


def drive(machine: Machine, part: Drive) -> str:
    """Recorded: NVMe_Device0_NSID1 and on, counted in hex."""
    return f"{STORAGE}/Drives/NVMe_Device{machine.drives.index(part):X}_NSID1"
