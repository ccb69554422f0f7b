"""The hardware of this host, from the file that the lab renders from its model of the machine.

A burn-in starts these tools dozens of times on each host of a lab. Importing `dataclasses`, `typing` and `pathlib` took
two thirds of each start; these classes therefore fill their fields without them.
"""

from __future__ import annotations

import json
import os
import re

from clusterctl_lab.emulators.host_tools.host.loaded import FABRIC, FACTS, GPUS, loaded
from clusterctl_lab.emulators.host_tools.host.small_files import text_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from clusterctl_lab.machine import Fan
    from clusterctl_lab.machine import Gpu as _Gpu

DRIVER_VERSION = os.environ.get("CLUSTERCTL_LAB_DRIVER", "/usr/lib/clusterctl-lab/driver-version")


class _Record:
    """Its fields are those of the file; a test checks that exactly these exist."""

    def __init__(self, **fields: object) -> None:
        self.__dict__.update(fields)


if not TYPE_CHECKING:
    Fan = _Gpu = _Record


class Gpu(_Gpu):
    """A GPU of the lab's model of the machine, with all its fields."""

    @property
    def address(self) -> str:
        """As the kernel spells it: `0000:1b:00.0`."""
        return self.pci[4:].lower()

    def shows(self, what: str) -> bool:
        """Return whether it has that error, which comes with the first load of the GPUs."""
        return self.under_load == what and loaded(GPUS)


class Hca(_Record):
    """`interface` is the network interface that carries its traffic in the lab, with the address `mac`.

    ethernet     its link layer is Ethernet; `switch` is its LLDP neighbour then, if any

    switch_width, switch_redirects   lanes of the PCIe switch above it, and whether ACS redirects are on there
    configured   a subnet manager has made its port active
    gpu_path_slow   it reads and writes GPU memory slowly
    load_hot        its chip gets too hot under load
    load_slow       it hardly writes while processors work
    symbol_per_hour, receive_per_hour   growth of its error counters; link_downed since the boot,
        load_downs more once the fabric has been loaded
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
    module_firmware: str
    symbol_per_hour: float
    receive_per_hour: float
    link_downed: int
    load_downs: int
    configured: bool
    gpu_path_slow: bool
    load_hot: bool
    load_slow: bool
    plugged: bool
    interface: str
    lid: int
    ethernet: bool
    mac: str
    switch: EthernetSwitch | None

    @property
    def downs(self) -> int:
        """How often its link went down so far."""
        return self.link_downed + (self.load_downs if loaded(FABRIC) else 0)


class EthernetSwitch(_Record):
    """The LLDP data of an Ethernet switch: its name, the MAC address of its chassis, the port's name."""

    name: str
    mac: str
    port: str


class Network(_Record):
    """The first NIC; `switch` is its LLDP neighbour, if any."""

    interface: str
    mac: str
    switch: EthernetSwitch | None


class Dimm(_Record):
    """A memory module; `locator` is the text printed next to its socket, its errors are those of the last hour.

    `flips`: under load it returns other bits than were written. `seen`: the firmware has started it.
    """

    locator: str
    size_mib: int
    corrected: int
    load_corrected: int
    uncorrected: int
    flips: bool
    seen: bool


class Disk(_Record):
    """A drive; `name` is the kernel's name. `used_percent` of its endurance; `failed`: it reports its failure; `boot`:
    the site names it as the root disk; `pending_sectors` that it cannot read; `lost_block`: its error log names a block
    that it could not read.
    """

    name: str
    serial: str
    model: str
    size_bytes: int
    failed: bool
    used_percent: int
    slow: bool
    boot: bool
    pending_sectors: int
    lost_block: bool


class Facts(_Record):
    """The machine, as far as its tools may report it.

    busy_mhz    the clock of its processors under load
    kernel_log  harmless lines that its kernel has logged
    own_kernel  it is a virtual machine: its kernel log is its own
    containers  the containers of its Docker: name → status as Docker prints it
    container_gpus  containers have access to GPUs
    peermem     nvidia-peermem is loaded; else the driver's kernel modules are not the open ones either
    iommu       the mode of its IOMMU, as the kernel names it
    weak_power  its power supplies do not carry GPUs and processors at the same time
    driver_lost the GPUs' driver is installed and not loaded
    swap        a partition is used as swap
    sums_wrong  its contribution to a sum over many nodes is wrong
    sums_stop   it stops during a long sum
    ethernet_errors  its Ethernet port receives broken packets; load_ethernet_errors: in each load of the GPUs
    cpu_busy    a user's processes use its processors
    docker_open every user can write to Docker's socket
    exporter_blind  dcgm-exporter does not report one of its GPUs
    ofed_mixed  NVIDIA's OFED is installed, and its kernel module is not loaded
    bluefield_dpu   its BlueField card is in DPU mode
    starts_fail each third start of a short sum over its own GPUs fails
    nvswitch_slow   traffic between its GPUs is slow
    storage_slow    it reads from the site's storage slowly
    pool_degraded   it has a ZFS pool of its data drives, which has given the last of them up
    """

    name: str
    serial: str
    manufacturer: str
    model: str
    dimms: tuple[Dimm, ...]
    cpus: int
    working_cpus: int
    cores: int
    busy_mhz: int
    kernel_log: list[str]
    own_kernel: bool
    containers: dict[str, str]
    container_gpus: bool
    peermem: bool
    iommu: str
    weak_power: bool
    driver_lost: bool
    swap: bool
    time_lost: bool
    sums_wrong: bool
    sums_stop: bool
    starts_fail: bool
    ethernet_errors: bool
    load_ethernet_errors: bool
    cpu_busy: bool
    docker_open: bool
    exporter_blind: bool
    ofed_mixed: bool
    bluefield_dpu: bool
    nvswitch_slow: bool
    storage_slow: bool
    pool_degraded: bool
    gpus: tuple[Gpu, ...]
    hcas: tuple[Hca, ...]
    fans: tuple[Fan, ...]
    network: Network
    disks: tuple[Disk, ...]

    @property
    def memory_gib(self) -> int:
        """What its modules add up to."""
        return sum(dimm.size_mib for dimm in self.dimms if dimm.seen) // 1024


def load() -> Facts:
    """Read the facts; raises `OSError` outside a lab host."""
    with open(FACTS, encoding="utf-8") as file:  # noqa: PTH123 — see small_files
        raw: dict[str, Any] = json.load(file)
    lists = {name: tuple(kind(**one) for one in raw.pop(name)) for name, kind in _LISTS.items()}
    return Facts(**lists, network=_network(raw.pop("network")), **raw)


def _hca(switch: dict[str, Any] | None, **values: Any) -> Hca:
    return Hca(switch=EthernetSwitch(**switch) if switch else None, **values)


_LISTS: dict[str, Callable[..., object]] = {"gpus": Gpu, "hcas": _hca, "fans": Fan, "dimms": Dimm, "disks": Disk}


def _network(raw: dict[str, Any]) -> Network:
    switch = raw.pop("switch")
    return Network(switch=EthernetSwitch(**switch) if switch else None, **raw)


def driver_version() -> str:
    """Of the NVIDIA driver; empty where none is installed, or loaded."""
    return "" if load().driver_lost else text_of(DRIVER_VERSION).strip()


def natural(name: str) -> tuple[str | int, ...]:
    """Sort key that puts `mlx5_2` before `mlx5_10`."""
    return tuple(int(part) if part.isdigit() else part for part in re.split(r"(\d+)", name))
