"""The resource paths of an iDRAC9, and its names of parts (FQDD, "fully qualified device descriptor")."""

from __future__ import annotations

from clusterctl_lab.machine import Drive, Gpu, Hca, Machine

ROOT = "/redfish/v1"
SESSION_SERVICE = f"{ROOT}/SessionService"
SESSIONS = f"{SESSION_SERVICE}/Sessions"
SYSTEM = f"{ROOT}/Systems/System.Embedded.1"
MEMORY = f"{SYSTEM}/Memory"
CHASSIS = f"{ROOT}/Chassis/System.Embedded.1"
EXTENDED_RESET = f"{CHASSIS}/Actions/Oem/DellOemChassis.ExtendedReset"
ENCLOSURE = f"{ROOT}/Chassis/Enclosure.Internal.0-1"
MANAGER = f"{ROOT}/Managers/iDRAC.Embedded.1"
SEL = f"{MANAGER}/LogServices/Sel"
LIFECYCLE_LOG = f"{MANAGER}/LogServices/Lclog"
FAULT_LIST = f"{MANAGER}/LogServices/FaultList"
UPDATE_SERVICE = f"{ROOT}/UpdateService"
FIRMWARE = f"{UPDATE_SERVICE}/FirmwareInventory"
MULTIPART_PUSH = f"{UPDATE_SERVICE}/MultipartUpload"
SIMPLE_UPDATE = f"{UPDATE_SERVICE}/Actions/UpdateService.SimpleUpdate"
ACCOUNT_SERVICE = f"{ROOT}/AccountService"
ACCOUNTS = f"{ACCOUNT_SERVICE}/Accounts"
BIOS = f"{SYSTEM}/Bios"
BIOS_SETTINGS = f"{BIOS}/Settings"
BIOS_REGISTRY = f"{BIOS}/BiosRegistry"
REGISTRIES = f"{ROOT}/Registries"
BOOT_OPTIONS = f"{SYSTEM}/BootOptions"
VIRTUAL_MEDIA = f"{MANAGER}/VirtualMedia"
CD = f"{VIRTUAL_MEDIA}/CD"
REMOVABLE_DISK = f"{VIRTUAL_MEDIA}/RemovableDisk"
MEDIA = (CD, REMOVABLE_DISK)
TASK_SERVICE = f"{ROOT}/TaskService"
TASKS = f"{TASK_SERVICE}/Tasks"
JOBS = f"{MANAGER}/Oem/Dell/Jobs"
JOB_SERVICE = f"{MANAGER}/Oem/Dell/DellJobService"
DELETE_JOBS = f"{JOB_SERVICE}/Actions/DellJobService.DeleteJobQueue"
LC_SERVICE = f"{MANAGER}/Oem/Dell/DellLCService"
LC_STATUS = f"{LC_SERVICE}/Actions/DellLCService.GetRemoteServicesAPIStatus"
LC_SCREEN = f"{LC_SERVICE}/Actions/DellLCService.ExportServerScreenShot"
NETWORK_PROTOCOL = f"{MANAGER}/NetworkProtocol"
HTTPS_CERTIFICATES = f"{NETWORK_PROTOCOL}/HTTPS/Certificates"
CERTIFICATE_SERVICE = f"{ROOT}/CertificateService"
MANAGER_RESET = f"{MANAGER}/Actions/Manager.Reset"
ADAPTERS = f"{CHASSIS}/NetworkAdapters"
NIC = "NIC.Embedded.1"

_FIRST_GPU_SLOT = 21
_FIRST_HCA_SLOT = 31


def gpu_fqdd(gpu: Gpu) -> str:
    """`Video.Slot.21-1` and up; the form is recorded, the slot numbers of an XE9680 are ours."""
    return f"Video.Slot.{_FIRST_GPU_SLOT + gpu.index}-1"


def hca_fqdd(hca: Hca) -> str:
    """`InfiniBand.Slot.31` and up, one single-port adapter per rail."""
    return f"InfiniBand.Slot.{_FIRST_HCA_SLOT + hca.rail}"


def cpu_fqdds(machine: Machine) -> list[str]:
    return [f"CPU.Socket.{number + 1}" for number in range(machine.cpus)]


def storage_fqdd(drive: Drive) -> str:
    """Return the controller of a drive: the CPU drives the bays of the backplane, other drives name their
    controller.
    """
    enclosure = drive.slot.rsplit(":", 1)[-1]
    return "CPU.1" if enclosure.startswith("Enclosure.") else enclosure


def storage(drive: Drive) -> str:
    return f"{SYSTEM}/Storage/{storage_fqdd(drive)}"


def drive(part: Drive) -> str:
    return f"{storage(part)}/Drives/{part.slot}"


def bus(pci: str) -> int:
    """The bus number of `0000:1b:00.0`."""
    return int(pci.split(":")[-2], 16)


def pcie_id(pci: str) -> str:
    """The id of a PCIe device: bus in decimal and device number, `27-0`."""
    return f"{bus(pci)}-0"


def pcie_devices(owner: str, machine: Machine) -> list[str]:
    """Paths of all PCIe devices below `owner` (system or chassis)."""
    addresses = [*(gpu.pci for gpu in machine.gpus), *(hca.pci for hca in machine.hcas)]
    return [f"{owner}/PCIeDevices/{pcie_id(address)}" for address in addresses]
