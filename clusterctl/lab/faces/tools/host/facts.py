"""What this host's hardware is, from the file that the lab renders from its model of the machine."""

from __future__ import annotations

import json
import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

FACTS = Path(os.environ.get("CLUSTERCTL_LAB_FACTS", "/etc/clusterctl-lab/machine.json"))
DRIVER_VERSION = Path(os.environ.get("CLUSTERCTL_LAB_DRIVER", "/usr/lib/clusterctl-lab/driver-version"))


@dataclass(frozen=True, slots=True)
class Gpu:
    """`pci` as nvidia-smi prints it; `index` as it counts. The fields are those of the lab's model of a machine."""

    index: int
    serial: str
    uuid: str
    pci: str
    model: str
    memory_mib: int
    memory_used_mib: int
    temperature_c: int
    memory_temperature_c: int
    correctable_ecc: int
    uncorrectable_ecc: int
    remapped_rows: int
    remap_failed: bool
    pcie_width: int
    pcie_replays: int
    on_bus: bool
    xids: list[int]
    links_down: list[int]
    persistence: bool
    vbios: str
    fabric_state: str
    speed_percent: int
    computes_wrong: bool
    load_c: int
    fails_diag: str

    @property
    def address(self) -> str:
        """As the kernel spells it: `0000:1b:00.0`."""
        return self.pci[4:].lower()


@dataclass(frozen=True, slots=True)
class Hca:
    """`interface` is the network interface that carries its traffic in the lab.

    switch_width, switch_redirects   lanes of the PCIe switch above it, and whether that one's ACS redirects
    symbol_per_hour, receive_per_hour   how fast its error counters grow; link_downed since the boot
    """

    name: str
    guid: str
    pci: str
    firmware: str
    psid: str
    rate_gbps: int
    pcie_width: int
    switch_width: int
    switch_redirects: bool
    rx_dbm: float
    symbol_per_hour: float
    receive_per_hour: float
    link_downed: int
    plugged: bool
    interface: str
    lid: int


@dataclass(frozen=True, slots=True)
class EthernetSwitch:
    """What an Ethernet switch says of itself by LLDP: its name, the MAC address of its chassis, the port's name."""

    name: str
    mac: str
    port: str


@dataclass(frozen=True, slots=True)
class Network:
    """The first NIC; `switch` is what it hears, if anybody."""

    interface: str
    mac: str
    switch: EthernetSwitch | None


@dataclass(frozen=True, slots=True)
class Dimm:
    """A memory module; `locator` is what is printed beside its socket, its errors are those of the last hour.

    `flips`: under load it gives back other bits than were written.
    """

    locator: str
    size_mib: int
    corrected: int
    uncorrected: int
    flips: bool


@dataclass(frozen=True, slots=True)
class Disk:
    """A drive; `name` as the kernel calls it. `used_percent` of its endurance; `failed`: it says that it is dead;
    `boot`: the site calls it the root disk.
    """

    name: str
    serial: str
    model: str
    size_bytes: int
    failed: bool
    used_percent: int
    slow: bool
    boot: bool


@dataclass(frozen=True, slots=True)
class Facts:
    """The machine, as far as its tools may tell of it.

    busy_mhz    the clock of its processors under load
    kernel_log  harmless lines that its kernel has logged
    own_kernel  it is a virtual machine: what its kernel logs is its own
    containers  what its Docker runs, by name, and its status in Docker's words
    container_gpus  containers are given GPUs
    peermem     nvidia-peermem is loaded; else the driver's kernel modules are not the open ones either
    iommu       how its IOMMU treats devices, as the kernel calls it
    weak_power  its power supplies do not carry GPUs and processors at the same time
    """

    name: str
    serial: str
    manufacturer: str
    model: str
    dimms: tuple[Dimm, ...]
    cpus: int
    cores: int
    busy_mhz: int
    kernel_log: list[str]
    own_kernel: bool
    containers: dict[str, str]
    container_gpus: bool
    peermem: bool
    iommu: str
    weak_power: bool
    gpus: tuple[Gpu, ...]
    hcas: tuple[Hca, ...]
    network: Network
    disks: tuple[Disk, ...]

    @property
    def memory_gib(self) -> int:
        """What its modules add up to."""
        return sum(dimm.size_mib for dimm in self.dimms) // 1024


def load() -> Facts:
    """Read the facts; raises `OSError` outside a lab host."""
    raw: dict[str, Any] = json.loads(FACTS.read_text())
    gpus = tuple(Gpu(**gpu) for gpu in raw.pop("gpus"))
    hcas = tuple(Hca(**hca) for hca in raw.pop("hcas"))
    dimms = tuple(Dimm(**dimm) for dimm in raw.pop("dimms"))
    disks = tuple(Disk(**disk) for disk in raw.pop("disks"))
    return Facts(gpus=gpus, hcas=hcas, dimms=dimms, disks=disks, network=_network(raw.pop("network")), **raw)


def _network(raw: dict[str, Any]) -> Network:
    switch = raw["switch"]
    return Network(raw["interface"], raw["mac"], EthernetSwitch(**switch) if switch else None)


def natural(name: str) -> tuple[str | int, ...]:
    """Sort key that puts `mlx5_2` before `mlx5_10`."""
    return tuple(int(part) if part.isdigit() else part for part in re.split(r"(\d+)", name))
