"""What physically exists in the lab. One model feeds BMC, installer, host tools and fabric alike.

A fault is a function Machine → Machine (`lab/faults/`): a GPU that is taken out here is missing from the Redfish tree,
from `nvidia-smi` and from the PCI bus, because all of them render this model.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from ipaddress import IPv4Network


@dataclass(frozen=True, slots=True)
class Gpu:
    """`pci` as `00000000:1B:00.0` (nvidia-smi's form)."""

    index: int
    serial: str
    uuid: str
    pci: str
    model: str = "NVIDIA H100 80GB HBM3"
    memory_mib: int = 81559
    uncorrectable_ecc: int = 0
    pcie_width: int = 16


@dataclass(frozen=True, slots=True)
class SwitchPort:
    """Where the far end of a cable is plugged in: switch name and port number (1-based)."""

    switch: str
    port: int


@dataclass(frozen=True, slots=True)
class Hca:
    """One ConnectX-7 port; `rail` is the rail it belongs to, `cable` where its cable goes (None: unplugged)."""

    name: str
    rail: int
    guid: str
    serial: str
    pci: str
    cable: SwitchPort | None
    model: str = "NVIDIA ConnectX-7 NDR400 OSFP"
    firmware: str = "28.39.1002"
    rate_gbps: int = 400


@dataclass(frozen=True, slots=True)
class Drive:
    """`boot` marks the drive that the SKU calls its root disk."""

    slot: str
    serial: str
    model: str
    size_bytes: int
    boot: bool = False


@dataclass(frozen=True, slots=True)
class Bmc:
    """`password` is the lab's own, made up at `lab up`, and of no use elsewhere."""

    address: str
    mac: str
    user: str
    password: str
    firmware: str = "7.00.30.00"


@dataclass(frozen=True, slots=True)
class Machine:
    """One server as it physically is. `boots` False: power comes on, POST never ends."""

    name: str
    index: int
    serial: str
    rack: str
    unit: int
    bmc: Bmc
    address: str
    boot_mac: str
    gpus: tuple[Gpu, ...]
    hcas: tuple[Hca, ...]
    drives: tuple[Drive, ...]
    manufacturer: str = "Dell Inc."
    model: str = "PowerEdge XE9680"
    bios_version: str = "2.1.3"
    cpus: int = 2
    cores: int = 96
    memory_gib: int = 2048
    boots: bool = True
    faults: tuple[str, ...] = ()

    def with_fault(self, name: str) -> Machine:
        """The same machine, remembering which fault was injected (for `lab status` only, never for a face)."""
        return replace(self, faults=(*self.faults, name))


@dataclass(frozen=True, slots=True)
class Layout:
    """Addresses inside the lab's /16: bridge and services .0.x, BMCs .1.x and up, hosts .128.x and up."""

    network: IPv4Network

    @property
    def gateway(self) -> str:
        return str(self.network[1])

    @property
    def maas(self) -> str:
        return str(self.network[2])

    @property
    def apt(self) -> str:
        return str(self.network[3])

    def bmc(self, index: int) -> str:
        return str(self.network[256 + index])

    def host(self, index: int) -> str:
        return str(self.network[128 * 256 + index])


HOSTS_PER_LEAF = 32
SPINES = 2


def leaf(rail: int, pod: int) -> str:
    return f"leaf-p{pod + 1}-r{rail + 1}"


GPU_BUSES = (0x1B, 0x43, 0x52, 0x61, 0x9D, 0xC3, 0xD1, 0xDF)
HCA_BUSES = (0x18, 0x40, 0x4F, 0x5E, 0x9A, 0xC0, 0xCE, 0xDC)
DATA_BAYS = 4


def build(index: int, layout: Layout, password: str, *, rails: int = 8) -> Machine:
    """A healthy machine; `index` from 1. Everything about it follows from `index`, so that a lab is reproducible."""
    octets = f"{index >> 8 & 255:02x}:{index & 255:02x}"
    return Machine(
        name=f"node{index:03d}",
        index=index,
        serial=f"LAB{index:04d}",
        rack=f"A{(index - 1) // 4 + 1:02d}",
        unit=4 + 8 * ((index - 1) % 4),
        bmc=Bmc(layout.bmc(index), f"02:1a:bb:00:{octets}", "root", password),
        address=layout.host(index),
        boot_mac=f"02:1a:ee:00:{octets}",
        gpus=tuple(_gpu(index, i, bus) for i, bus in enumerate(GPU_BUSES)),
        hcas=tuple(_hca(index, i, bus) for i, bus in enumerate(HCA_BUSES[:rails])),
        drives=(_root_drive(index), *(_data_drive(index, bay) for bay in range(DATA_BAYS))),
    )


def _gpu(machine: int, index: int, bus: int) -> Gpu:
    return Gpu(
        index=index,
        serial=f"165{machine:05d}{index:04d}",
        uuid=f"GPU-{machine:08x}-0000-4000-8000-{index:012x}",
        pci=f"00000000:{bus:02X}:00.0",
    )


def _hca(machine: int, rail: int, bus: int) -> Hca:
    """Each rail has a leaf of its own in each pod; the machine's place in its pod is its port there."""
    pod, place = divmod(machine - 1, HOSTS_PER_LEAF)
    return Hca(
        name=f"mlx5_{rail}",
        rail=rail,
        guid=f"a088c20300{machine:04x}{rail:02x}",
        serial=f"MT2340{machine:04d}{rail:02d}",
        pci=f"0000:{bus:02x}:00.0",
        cable=SwitchPort(leaf(rail, pod), place + 1),
    )


def _root_drive(machine: int) -> Drive:
    return Drive("Disk.Direct.0-0:AHCI.Slot.1-1", f"BOSS{machine:04d}", "MTFDDAV480TDS", 480_103_981_056, boot=True)


def _data_drive(machine: int, bay: int) -> Drive:
    slot = f"Disk.Bay.{bay}:Enclosure.Internal.0-1"
    return Drive(slot, f"NVME{machine:04d}{bay}", "Dell DC NVMe PM9A3", 3_840_755_982_336)
