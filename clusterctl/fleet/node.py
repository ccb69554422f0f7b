"""A node and its parts, as discovered: identity is by serial, never by address."""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import NewType

NodeId = NewType("NodeId", str)
Serial = NewType("Serial", str)
Mac = NewType("Mac", str)  # lower case, colons
Guid = NewType("Guid", str)  # 16 hex digits, lower case, no 0x


class Verb(enum.Enum):
    """The steps, in the order of a node's way."""

    DISCOVER = "discover"
    INSTALL = "install"
    CONFIGURE = "configure"
    CABLE = "cable"
    BURNIN = "burnin"
    ADMIT = "admit"

    @property
    def leads_to(self) -> Stage:
        return _LEADS_TO[self]


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

    @property
    def next_verb(self) -> Verb | None:
        """The step that leads on from here; None at gold and in quarantine."""
        return _NEXT_VERB.get(self)


_WAY = (Stage.SEEN, Stage.DISCOVERED, Stage.INSTALLED, Stage.CONFIGURED, Stage.CABLED, Stage.BURNED_IN, Stage.GOLD)
_NEXT_VERB = dict(zip(_WAY, Verb, strict=False))
_LEADS_TO = dict(zip(Verb, _WAY[1:], strict=True))


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
class Gpu:
    """`slot` is the BMC's own id of it; `pci` `0000:1b:00.0`, lower case, empty where unknown."""

    slot: str
    model: str
    serial: Serial | None = None
    pci: str = ""


@dataclass(frozen=True, slots=True)
class Hca:
    """An InfiniBand adapter port. `guid` is the node/port GUID where the BMC or host tells it."""

    slot: str
    model: str
    serial: Serial | None = None
    guid: Guid | None = None
    firmware: str = ""


@dataclass(frozen=True, slots=True)
class Nic:
    """An Ethernet port of the host (never the BMC's own)."""

    slot: str
    mac: Mac
    boots: bool = False


@dataclass(frozen=True, slots=True)
class Drive:
    """`size_bytes` as the BMC reports it; `serial` is the only key that joins BMC, MAAS and host."""

    slot: str
    model: str
    size_bytes: int
    serial: Serial | None = None
    protocol: str = ""
    healthy: bool | None = None


@dataclass(frozen=True, slots=True)
class Inventory:
    """What a BMC says of its machine. A tuple that is None was not readable: unmeasured, not absent."""

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
    psus_ok: bool | None = None
    health: str = ""
