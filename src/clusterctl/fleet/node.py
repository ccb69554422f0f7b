"""A node and its parts, as discovered: identity is by serial, never by address."""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import NewType

NodeId = NewType("NodeId", str)
Serial = NewType("Serial", str)
Mac = NewType("Mac", str)  # lower case, colons
Guid = NewType("Guid", str)  # 16 hex digits, lower case, no 0x


class Step(enum.Enum):
    """The steps that lead to gold, in their order."""

    DISCOVER = "discover"
    INSTALL = "install"
    CONFIGURE = "configure"
    CABLE = "cable"
    BURNIN = "burnin"
    ADMIT = "admit"

    @property
    def leads_to(self) -> Stage:
        return _LEADS_TO[self]


class RevalidationOrigin(enum.Enum):
    """What ordered a revalidation."""

    OPERATOR = "operator"
    NIGHT = "night"
    MAINTENANCE = "maintenance"


class Stage(enum.Enum):
    """Where a node stands."""

    SEEN = "seen"
    DISCOVERED = "discovered"
    INSTALLED = "installed"
    CONFIGURED = "configured"
    CABLED = "cabled"
    BURNED_IN = "burned-in"
    GOLD = "gold"
    QUARANTINED = "quarantined"
    RETIRED = "retired"

    @property
    def next_step(self) -> Step | None:
        """The step that leads on from here; None at gold, in quarantine and when retired."""
        return _NEXT_STEP.get(self)


PATH = (Stage.SEEN, Stage.DISCOVERED, Stage.INSTALLED, Stage.CONFIGURED, Stage.CABLED, Stage.BURNED_IN, Stage.GOLD)
"""The stages from first sight to gold, in order."""
_NEXT_STEP = dict(zip(PATH, Step, strict=False))
_LEADS_TO = dict(zip(Step, PATH[1:], strict=True))


@dataclass(frozen=True, slots=True)
class Location:
    """Where the machine stands: rack name and lowest rack unit; empty and None where unknown."""

    rack: str = ""
    unit: int | None = None

    def __str__(self) -> str:
        if not self.rack:
            return "location unknown"
        return f"rack {self.rack}" + (f" U{self.unit}" if self.unit is not None else "")


@dataclass(frozen=True, slots=True)
class Cpu:
    """A populated socket. `cores` is None where the BMC does not report it."""

    slot: str
    model: str
    cores: int | None = None
    serial: Serial | None = None
    healthy: bool | None = None


@dataclass(frozen=True, slots=True)
class Dimm:
    """A memory module that is plugged in; `model` its maker's part number."""

    slot: str
    size_mib: int
    model: str = ""
    serial: Serial | None = None
    healthy: bool | None = None


@dataclass(frozen=True, slots=True)
class Gpu:
    """`slot` is the BMC's own id of it; `pci` `0000:1b:00.0`, lower case, empty where unknown."""

    slot: str
    model: str
    serial: Serial | None = None
    pci: str = ""
    healthy: bool | None = None


@dataclass(frozen=True, slots=True)
class Hca:
    """A port of an InfiniBand adapter, or of one that carries RoCE; `port` counts from 1.

    guid  the node or port GUID, where the BMC or host reports it
    """

    slot: str
    model: str
    serial: Serial | None = None
    guid: Guid | None = None
    firmware: str = ""
    port: int | None = None


@dataclass(frozen=True, slots=True)
class Nic:
    """An Ethernet port of the host (never the BMC's own). `link`: whether it has a link; None where that is unknown."""

    slot: str
    mac: Mac
    boots: bool = False
    link: bool | None = None


@dataclass(frozen=True, slots=True)
class Drive:
    """`size_bytes` as the BMC reports it; `serial` is the key that joins BMC, MAAS and host. `wwn` is the world-wide
    name (NAA, EUI-64, NGUID), empty for the many BMCs that do not report it. `controller`: id and name of the drive's
    controller.
    """

    slot: str
    model: str
    size_bytes: int
    serial: Serial | None = None
    protocol: str = ""
    healthy: bool | None = None
    wwn: str = ""
    controller: str = ""


@dataclass(frozen=True, slots=True)
class Psu:
    """A power supply that is plugged in. `healthy` is None where the BMC does not report it."""

    slot: str
    serial: Serial | None = None
    healthy: bool | None = None


@dataclass(frozen=True, slots=True)
class Fan:
    """A fan that is there."""

    slot: str
    healthy: bool | None = None


@dataclass(frozen=True, slots=True)
class Firmware:
    """The version that runs on a component, as the BMC names it."""

    component: str
    version: str


@dataclass(frozen=True, slots=True)
class Rollup:
    """A kind of parts that is not well as a whole, by the BMC's word: `health` is Warning or Critical."""

    name: str
    health: str


@dataclass(frozen=True, slots=True)
class Temperature:
    """What one sensor reads, in °C. `intake`: it measures the air that the machine breathes.

    critical  the reading from which on the BMC calls it critical; None where it names none
    health    as the BMC reports it: OK, Warning, Critical, or empty where it does not
    """

    sensor: str
    celsius: float
    critical: float | None = None
    health: str = ""
    intake: bool = False


@dataclass(frozen=True, slots=True)
class Unread:
    """What a BMC lists but does not give, or garbles. `kind`: the field of the inventory that it belongs to."""

    kind: str
    where: str
    reason: str

    def __str__(self) -> str:
        return f"{self.where}: {self.reason}"


@dataclass(frozen=True, slots=True)
class Inventory:
    """What a BMC reports of its machine. A tuple that is None was not readable: unmeasured, not absent.

    temperatures  empty where the BMC has no sensor that reads (many have none while the machine is off)
    stale         why all of this may be older than the machine's parts, as text; empty where nothing shows that
    rollups       the kinds of unhealthy parts; empty where the BMC names none
    on            whether the machine was on meanwhile; None where the BMC does not report it
    aliases       other serials that the BMC gives for the machine: of its chassis, its boards, its product label
    unread        what the BMC lists but does not give: the parts above may be more than were read
    ethernet_adapters  ports of adapters for Ethernet only, of any maker: those of a RoCE fabric are among them
    posted        when its last self-test ended, as the BMC writes it; empty where the BMC reports the end without a
                  time; None where the machine has not ended it, or the BMC does not report it
    """

    manufacturer: str
    model: str
    serial: Serial
    bios_version: str = ""
    bmc_firmware: str = ""
    cpu_count: int | None = None
    memory_gib: float | None = None
    gpus: tuple[Gpu, ...] | None = None
    hcas: tuple[Hca, ...] | None = None
    nics: tuple[Nic, ...] | None = None
    drives: tuple[Drive, ...] | None = None
    psus: tuple[Psu, ...] | None = None
    temperatures: tuple[Temperature, ...] | None = None
    health: str = ""
    cpus: tuple[Cpu, ...] | None = None
    dimms: tuple[Dimm, ...] | None = None
    fans: tuple[Fan, ...] | None = None
    firmware: tuple[Firmware, ...] | None = None
    stale: str = ""
    on: bool | None = None
    posted: str | None = None
    ethernet_adapters: tuple[Hca, ...] | None = None
    rollups: tuple[Rollup, ...] = ()
    aliases: tuple[Serial, ...] = ()
    unread: tuple[Unread, ...] = ()

    def complete(self, kind: str) -> bool:
        """Return whether the BMC has given this field, and all parts of it."""
        return getattr(self, kind) is not None and all(one.kind != kind for one in self.unread)

    def is_machine(self, serial: Serial | None) -> bool:
        """Return whether the serial is one of the machine's."""
        return serial is not None and serial in (self.serial, *self.aliases)
