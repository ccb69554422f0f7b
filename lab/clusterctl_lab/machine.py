"""What physically exists in the lab. One model feeds BMC, installer, host tools and fabric alike.

A fault is a function Machine → Machine (`lab/faults/`): a GPU that is taken out here is missing from the Redfish tree,
from `nvidia-smi` and from the PCI bus, because all of them render this model.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass, field, replace

from clusterctl_lab.bmc_quirk import BmcQuirk
from clusterctl_lab.maas_quirk import MaasQuirk
from clusterctl_lab.vendor import Vendor


@dataclass(frozen=True, slots=True)
class Gpu:
    """`pci` as `00000000:1B:00.0` (nvidia-smi's form).

    on_bus         False: it fell off the PCI bus since POST; the BMC still lists it, the host's tools have lost it
    xids           codes of NVIDIA's catalogue that its driver has logged since the boot, in that order
    links_down     its NVLinks that have no peer
    nvlink_replays_per_hour   how fast one NVLink's replay errors grow
    remap_failed   a row could not be remapped any more
    persistence    its driver stays loaded while no process uses it
    fabric_state   how far it has joined the NVSwitches: Completed, or In Progress
    speed_percent  of the multiplications of a healthy one
    computes_wrong now and then a product is wrong, and nothing reports it
    load_c         its temperature when it works; at 87 and above its hardware halves its clock
    fails_diag     the test of DCGM's diagnosis that it fails; empty for none
    ecc            its memory is corrected
    mig            it is divided into slices (MIG)
    recovery       what its driver wants to be done with it; None, GPU Reset
    hot_slowdown   its hardware lowers its clock for heat, although it is idle
    pcie_generation   the highest that it and its slot reach
    idle_w         the power that it draws while idle
    under_load     what happens to it once the GPUs have been loaded: `xid`, `ecc`, `nvlink`, `pcie`, `aer`,
                   `remap`, `hot-memory`, `nvlink-crc`, or nothing
    """

    index: int
    serial: str
    uuid: str
    pci: str
    model: str = "NVIDIA H100 80GB HBM3"
    memory_mib: int = 81559
    memory_used_mib: int = 0
    temperature_c: int = 30
    memory_temperature_c: int = 40
    correctable_ecc: int = 0
    uncorrectable_ecc: int = 0
    remapped_rows: int = 0
    remap_failed: bool = False
    pcie_width: int = 16
    pcie_replays: int = 0
    on_bus: bool = True
    xids: tuple[int, ...] = ()
    links_down: tuple[int, ...] = ()
    nvlink_replays_per_hour: int = 0
    persistence: bool = True
    vbios: str = "96.00.74.00.0D"
    fabric_state: str = "Completed"
    speed_percent: int = 100
    computes_wrong: bool = False
    load_c: int = 64
    fails_diag: str = ""
    ecc: bool = True
    mig: bool = False
    recovery: str = "None"
    hot_slowdown: bool = False
    pcie_generation: int = 5
    under_load: str = ""
    idle_w: float = 67.74


@dataclass(frozen=True, slots=True)
class PortErrors:
    """How fast a port's error counters grow, per hour of its life; and how often its link went down since the boot.

    load_downs  so often more, once the fabric has been loaded
    """

    symbol_per_hour: float = 0.0
    receive_per_hour: float = 0.0
    link_downed: int = 0
    load_downs: int = 0


@dataclass(frozen=True, slots=True)
class Shaping:
    """A port that passes less than it should: `mbit_s` at most, for `share` of the time (1: always).

    Where `share` is below 1 it comes and goes at random (seeded): a bad and a good spell take `cycle_s` on average.
    """

    mbit_s: int
    share: float = 1.0
    cycle_s: float = 10.0


@dataclass(frozen=True, slots=True)
class SwitchPort:
    """Where the far end of a cable is plugged in: switch name and port number (1-based)."""

    switch: str
    port: int


@dataclass(frozen=True, slots=True)
class Hca:
    """One ConnectX-7 port; `rail` is the rail it belongs to, `cable` where its cable goes (None: unplugged).

    rate_gbps         what its link has trained to
    switch_width      the lanes between the PCIe switch above it (and above a GPU) and the processor
    switch_redirects  Access Control Services of that switch's ports are on
    rx_dbm            the light that its transceiver gets
    module_firmware   of its transceiver
    psid              which board it is, by its maker's number of the firmware's parameter set
    configured       the subnet manager has made its port active
    gpu_path_slow    it reads and writes GPU memory slowly, and the host's at its full rate
    load_hot         its chip gets too hot once the fabric has been loaded
    load_slow        it hardly writes while the processors of its host work
    ethernet         its link layer is Ethernet (RoCE)
    lossless         flow control (PFC) is on for the priority of its RDMA traffic; only with Ethernet
    """

    name: str
    rail: int
    guid: str
    serial: str
    pci: str
    cable: SwitchPort | None
    model: str = "NVIDIA ConnectX-7 NDR400 OSFP"
    ethernet: bool = False
    lossless: bool = True
    firmware: str = "28.39.1002"
    psid: str = "MT_0000000838"
    rate_gbps: int = 400
    pcie_width: int = 16
    switch_width: int = 16
    switch_redirects: bool = False
    temperature_c: int = 50
    rx_dbm: float = 1.0
    module_firmware: str = "47.171.1012"
    configured: bool = True
    gpu_path_slow: bool = False
    load_hot: bool = False
    load_slow: bool = False
    errors: PortErrors = PortErrors()
    shaping: Shaping | None = None

    @property
    def mac(self) -> str:
        """The MAC address of its port in Ethernet mode: the GUID without its middle."""
        digits = self.guid[:6] + self.guid[-6:]
        return ":".join(digits[place : place + 2] for place in range(0, 12, 2))


@dataclass(frozen=True, slots=True)
class Drive:
    """`boot` marks the drive that the SKU calls its root disk; `failed`: it answers, and reports that it has failed.

    on_bus  False: it fell off the PCI bus since the BMC looked, which still lists it; only virtual metal lacks it
    used_percent  of the endurance that its maker warrants
    slow    it reads a fraction of what its like do, and finds nothing wrong with itself
    pending_sectors  of a SATA drive, that it cannot read
    lost_block       the error log of an NVMe drive names a block that it could not read
    pulled  it was drawn out of its bay, also of a machine that runs; then it is not on the bus either
    """

    slot: str
    serial: str
    model: str
    size_bytes: int
    boot: bool = False
    failed: bool = False
    on_bus: bool = True
    pulled: bool = False
    used_percent: int = 1
    slow: bool = False
    pending_sectors: int = 0
    lost_block: bool = False


@dataclass(frozen=True, slots=True)
class Psu:
    """`slot` as `PS1`."""

    slot: str
    serial: str
    failed: bool = False


@dataclass(frozen=True, slots=True)
class Dimm:
    """A memory module; `slot` is its socket by the BMC's inventory, `in_log` by the BMC's event log.

    failed              it has lost data (an uncorrectable ECC error); the machine still counts it
    corrected_per_hour  how often ECC corrects what it reads
    load_corrected      so many more errors are corrected once the GPUs have been loaded
    flips               under full load it gives back other bits than were written
    seen                False: the firmware has not started it; the BMC, which asked it earlier, still lists it
    """

    slot: str
    in_log: str
    serial: str
    size_mib: int
    failed: bool = False
    corrected_per_hour: int = 0
    load_corrected: int = 0
    flips: bool = False
    seen: bool = True


@dataclass(frozen=True, slots=True)
class Fan:
    """`slot` and `in_log` as a memory module's; `failed`: it does not turn; `speed_percent` of its normal speed."""

    slot: str
    in_log: str
    failed: bool = False
    speed_percent: int = 100


class BmcCondition(enum.Enum):
    """WORKS; DEAD: nothing answers at its address; HANGS: it takes connections and never answers."""

    WORKS = "works"
    DEAD = "dead"
    HANGS = "hangs"


@dataclass(frozen=True, slots=True)
class Bmc:
    """`password` is the lab's own, made up at `lab up`, and of no use elsewhere.

    quirks    how it misbehaves
    latency_s  the shortest and the longest time that one with BmcQuirk.SLOW takes for an answer
    """

    address: str
    mac: str
    user: str
    password: str
    firmware: str = "7.00.30.00"
    vendor: Vendor = Vendor.DELL
    condition: BmcCondition = BmcCondition.WORKS
    quirks: frozenset[BmcQuirk] = frozenset()
    latency_s: tuple[float, float] = (1.0, 3.0)


@dataclass(frozen=True, slots=True)
class System:
    """What is wrong with the OS that runs on a machine; all of it is done to the host for real, while it runs.

    frozen           every process stands still
    sshd_stopped, exporter_stopped, docker_stopped, fabric_manager_stopped   the service is stopped for good
    disk_full        the path of the file system that has no room left; empty: none
    read_only        the root file system is mounted read-only
    clock_offset_s   its clock is so many seconds ahead (negative: behind)
    cpu_percent      all its processes together get at most so much of one core; None: no quota
    fixed_mhz        its cores do not leave this frequency; None: they do
    network_lost     its management cable carries nothing
    mount_lost       a file system of its /etc/fstab is not mounted
    unit_failed      a service that training needs ends as soon as it is started
    inodes_used     a file system has many small files
    hung_process    a process sleeps in the kernel and does not wake up
    names_lost       its name server is unreachable
    time_lost        its time server is unreachable
    other_release    it reports another release than the installed one
    container_gpus_lost   no container is given GPUs
    container_unhealthy    one of its containers is unhealthy
    peermem_lost     nvidia-peermem is not loaded, and the driver's kernel modules are not the open ones
    iommu_translates its IOMMU translates what devices read and write
    weak_power       its power supplies do not carry GPUs and processors that work at the same time
    driver_lost      the GPUs' driver is not loaded
    swap_on          a partition is used as swap
    cpu_disabled     its firmware has switched its last processor off
    is_another       another machine than the site believes answers at its address
    sums_wrong       what it gives to a sum over many nodes is wrong
    ethernet_errors  its Ethernet port receives packets with CRC errors
    load_ethernet_errors  as above, but only while the GPUs are loaded
    cpu_busy         a user's processes use its processors
    docker_open      every user can write to Docker's socket
    exporter_blind   dcgm-exporter does not report one of its GPUs
    ofed_mixed       NVIDIA's OFED is installed in part: the kernel runs its own module
    bluefield_dpu    its BlueField card is in DPU mode
    starts_fail      each third start of a collective over its own GPUs fails
    sums_stop        in the middle of a long sum over many nodes its GPUs stop, and nothing reports it
    storage_slow     it reads from the site's storage slowly
    ethernet_slow    its Ethernet port sends slowly, and its link is up at full speed
    mtu_wrong        its Ethernet port has the MTU of another network
    pool_degraded    it has a ZFS pool, which has given one of its drives up
    nvswitch_slow    its GPUs reach each other slowly, over links that are all up
    """

    frozen: bool = False
    sshd_stopped: bool = False
    exporter_stopped: bool = False
    docker_stopped: bool = False
    fabric_manager_stopped: bool = False
    disk_full: str = ""
    read_only: bool = False
    clock_offset_s: int = 0
    cpu_percent: int | None = None
    fixed_mhz: int | None = None
    network_lost: bool = False
    hung_process: bool = False
    inodes_used: bool = False
    ethernet_slow: bool = False
    mount_lost: bool = False
    mtu_wrong: bool = False
    names_lost: bool = False
    time_lost: bool = False
    unit_failed: bool = False
    other_release: bool = False
    container_gpus_lost: bool = False
    container_unhealthy: bool = False
    peermem_lost: bool = False
    iommu_translates: bool = False
    weak_power: bool = False
    driver_lost: bool = False
    swap_on: bool = False
    cpu_disabled: bool = False
    is_another: bool = False
    sums_wrong: bool = False
    sums_stop: bool = False
    starts_fail: bool = False
    ethernet_errors: bool = False
    load_ethernet_errors: bool = False
    cpu_busy: bool = False
    docker_open: bool = False
    exporter_blind: bool = False
    ofed_mixed: bool = False
    bluefield_dpu: bool = False
    nvswitch_slow: bool = False
    pool_degraded: bool = False
    storage_slow: bool = False


@dataclass(frozen=True, slots=True)
class LogLine:
    """An entry that a fault has left in the BMC's event log: `severity` OK, Warning or Critical."""

    severity: str
    message: str


@dataclass(frozen=True, slots=True)
class Machine:
    """One server as it physically is.

    network     where the management cable of its first NIC goes: a port of its rack's switch
    boots       False: power comes on, POST never ends
    boots_from  the serial of a drive with another owner's older OS that its firmware prefers; empty: it boots what was
                installed
    bios        the BIOS attributes that are not as its vendor delivers them
    busy_mhz    the clock of its processors when all are busy
    inlet_c     the air that it breathes
    logged      entries that its faults have left in the BMC's event log
    kernel_log  harmless lines that its kernel has logged
    seed        what its healthy values were drawn from (`lab/noise.py`)
    smbios_serial the serial that virtual metal's firmware gives to its OS; empty: its own
    maas_quirks how the lab's MAAS misbehaves with it
    """

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
    bios: tuple[tuple[str, str | int], ...] = ()
    cpus: int = 2
    cores: int = 96
    busy_mhz: int = 3000
    psus: tuple[Psu, ...] = ()
    dimms: tuple[Dimm, ...] = ()
    fans: tuple[Fan, ...] = ()
    inlet_c: int = 22
    network: SwitchPort | None = None
    boots: bool = True
    boots_from: str = ""
    system: System = field(default_factory=System)
    logged: tuple[LogLine, ...] = ()
    kernel_log: tuple[str, ...] = ()
    seed: int = 0
    smbios_serial: str = ""
    maas_quirks: frozenset[MaasQuirk] = frozenset()
    faults: tuple[str, ...] = ()

    @property
    def memory_gib(self) -> int:
        """What its modules add up to."""
        return sum(dimm.size_mib for dimm in self.dimms) // 1024

    @property
    def foreign_disk(self) -> Drive | None:
        """Return the drive with another owner's older OS that it boots; None where it boots the installed one."""
        return next((drive for drive in self.drives if drive.serial == self.boots_from), None)

    def with_fault(self, name: str) -> Machine:
        """The same machine, remembering which fault was injected (for `lab status` only, never for a face)."""
        return replace(self, faults=(*self.faults, name))


HOSTS_PER_LEAF = 32
SPINES = 2


def leaf(rail: int, pod: int) -> str:
    return f"leaf-p{pod + 1}-r{rail + 1}"
