"""What the servers of the vendors differ in: names, versions, drives, power supplies. GPUs and HCAs are the same."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from clusterctl_lab.machine import Drive
from clusterctl_lab.vendor import Vendor

_NVME_BYTES = 3_840_755_982_336
_BOOT_BYTES = 480_103_981_056


@dataclass(frozen=True, slots=True)
class Make:
    """`boot_slot` is where the boot drive sits, `data_slot` gives the place of a data bay, counted from 0."""

    manufacturer: str
    model: str
    bios_version: str
    bmc_firmware: str
    hca_model: str
    psus: int
    boot_model: str
    boot_slot: str
    data_model: str
    data_slot: Callable[[int], str]

    def boot_drive(self, machine: int) -> Drive:
        return Drive(self.boot_slot, f"BOSS{machine:04d}", self.boot_model, _BOOT_BYTES, boot=True)

    def data_drive(self, machine: int, bay: int) -> Drive:
        return Drive(self.data_slot(bay), f"NVME{machine:04d}{bay}", self.data_model, _NVME_BYTES)


MAKES = {
    Vendor.DELL: Make(
        manufacturer="Dell Inc.",
        model="PowerEdge XE9680",
        bios_version="2.1.3",
        bmc_firmware="7.00.30.00",
        hca_model="NVIDIA ConnectX-7 NDR400 OSFP",
        psus=6,
        boot_model="MTFDDAV480TDS",
        boot_slot="Disk.Direct.0-0:AHCI.Slot.1-1",
        data_model="Dell DC NVMe PM9A3",
        data_slot="Disk.Bay.{}:Enclosure.Internal.0-1".format,
    ),
    Vendor.SUPERMICRO: Make(
        manufacturer="Supermicro",
        model="SYS-821GE-TNHR",
        bios_version="1.4",
        bmc_firmware="11.01.01",
        hca_model="MCX75310AAS-NEAT",
        psus=8,
        boot_model="SAMSUNG MZ1L2480",
        boot_slot="Disk.Bay.8",
        data_model="SAMSUNG MZQL23T8HCLS-00A07",
        data_slot="Disk.Bay.{}".format,
    ),
    Vendor.HPE: Make(
        manufacturer="HPE",
        model="ProLiant XL675d Gen10 Plus",
        bios_version="A47 v2.60 (08/11/2022)",
        bmc_firmware="iLO 5 v2.72",
        hca_model="HPE InfiniBand NDR 1-port OSFP PCIe5 x16 MCX75310AAS-NEAT Adapter",
        psus=6,
        boot_model="MZ1L2480HCJR-00AH3",
        boot_slot="Box 3:Bay 1",
        data_model="MZXL53T8HBLS-000H3",
        data_slot=lambda bay: f"Box 2:Bay {bay + 1}",
    ),
    Vendor.OPENBMC: Make(
        manufacturer="NVIDIA",
        model="DGXH100",
        bios_version="1.1.3",
        bmc_firmware="23.11.20",
        hca_model="NVIDIA ConnectX-7 NDR400",
        psus=6,
        boot_model="SAMSUNG MZ1L2480",
        boot_slot="M.2 0",
        data_model="KIOXIA KCM6DRUL3T84",
        data_slot="U.2 {}".format,
    ),
}
"""Dell, Supermicro and NVIDIA sell these; the ProLiant is HPE's last one with an iLO 5 and eight GPUs, and its H100 are
ours: it was sold with A100.
"""
