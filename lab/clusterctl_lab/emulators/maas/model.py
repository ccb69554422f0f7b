"""What MAAS remembers: machines with their parts and events, pools, tags. In memory only."""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime

from clusterctl_lab.emulators.maas.status import Status

LEVELS = {"DEBUG": 10, "INFO": 20, "WARNING": 30, "ERROR": 40, "CRITICAL": 50, "AUDIT": 0}
SYSTEM_ID_LETTERS = "4367abcdefghkmnpqrstwxy8"
MIB4 = 4 * 1024 * 1024


@dataclass(slots=True)
class Partition:
    """The root partition that a flat layout makes, or one that an operator mounts elsewhere. Sizes in bytes."""

    id: int
    uuid: str
    filesystem_uuid: str
    size: int
    mount_point: str = "/"


@dataclass(slots=True)
class Disk:
    """A physical block device as commissioning found it."""

    id: int
    name: str
    serial: str
    model: str
    size: int
    nvme: bool
    root: Partition | None = None

    @property
    def usable(self) -> int:
        """What partitions may take: whole blocks of 4 MiB, less one for the partition table (as recorded)."""
        return (self.size // MIB4 - 1) * MIB4


@dataclass(slots=True)
class Interface:
    """An Ethernet port. `address` is its DHCP address from commissioning; empty before."""

    id: int
    name: str
    mac: str
    link: int
    address: str = ""


@dataclass(frozen=True, slots=True)
class Hardware:
    """What commissioning read off the machine."""

    vendor: str
    product: str
    serial: str
    bios_version: str
    uuid: str
    cpu_count: int
    memory_mib: int


@dataclass(frozen=True, slots=True)
class Event:
    """`action` shows as the machine's `status_action`."""

    id: int
    system_id: str
    hostname: str
    level: str
    type: str
    description: str
    at: datetime
    action: str = ""


@dataclass(slots=True)
class Node:
    """One machine.

    powering   MAAS is communicating with its BMC
    addressed  it has the address that deployments assign to it
    previous   the state that an aborted operation returns to
    netboot    it shall boot from the network, not from its disk
    """

    system_id: str
    hostname: str
    architecture: str
    power_type: str
    power_parameters: dict[str, str]
    interfaces: list[Interface]
    description: str = ""
    status: Status = Status.NEW
    previous: Status = Status.NEW
    owner: str = ""
    agent_name: str = ""
    pool: str = "default"
    zone: str = "default"
    domain: str = "maas"
    tags: list[str] = field(default_factory=list)
    annotations: dict[str, str] = field(default_factory=dict)
    power_state: str = "unknown"
    powering: bool = False
    addressed: bool = False
    locked: bool = False
    netboot: bool = True
    runs_tests: bool = True
    osystem: str = ""
    series: str = ""
    kernel: str = ""
    ephemeral: bool = False
    user_data: bytes = b""
    install_log: str = ""
    hardware: Hardware | None = None
    disks: list[Disk] = field(default_factory=list)
    boot_disk_id: int | None = None
    commissioning: int = -1
    testing: int = -1
    commissioning_id: int | None = None
    testing_id: int | None = None
    installation_id: int | None = None
    events: list[Event] = field(default_factory=list)

    @property
    def macs(self) -> set[str]:
        return {interface.mac for interface in self.interfaces}

    @property
    def boot_disk(self) -> Disk | None:
        """The chosen one, else (MAAS's fallback) the one with the lowest id."""
        chosen = [disk for disk in self.disks if disk.id == self.boot_disk_id]
        return next(iter((*chosen, *sorted(self.disks, key=lambda disk: disk.id))), None)

    @property
    def root_disk(self) -> Disk | None:
        """Return the disk for the OS: the one that contains `/`."""
        return next((disk for disk in self.disks if disk.root is not None and disk.root.mount_point == "/"), None)


@dataclass(slots=True)
class Pool:
    id: int
    name: str
    description: str


@dataclass(slots=True)
class Tag:
    name: str
    comment: str
    kernel_opts: str
    definition: str


class Store:
    """The data of MAAS's database. `hostile`: machines whose events contain escapes and HTML."""

    def __init__(self) -> None:
        self.nodes: dict[str, Node] = {}
        self.pools = {"default": Pool(0, "default", "Default pool")}
        self.tags: dict[str, Tag] = {}
        self.zones = {"default": 1}
        self.hostile: set[str] = set()
        self.ids = {kind: itertools.count(1) for kind in ("interface", "disk", "partition", "link", "script", "pool")}
        self._event_ids = itertools.count(1)
        self._random = random.Random(7)  # noqa: S311 — system ids are names, not secrets; the same in every lab

    def new_system_id(self) -> str:
        while True:
            system_id = "".join(self._random.choices(SYSTEM_ID_LETTERS, k=6))
            if system_id not in self.nodes:
                return system_id

    def next_id(self, kind: str) -> int:
        return next(self.ids[kind])

    def log(self, node: Node, kind: str, description: str = "", level: str = "INFO", action: str = "") -> None:
        """Append to the node's events; the newest one is its `status_message`."""
        if node.system_id in self.hostile and description:
            description = f"\x1b[2J<b onclick=x>{description}</b>\u202e\r\n" + "x" * 5000
        node.events.append(
            Event(
                next(self._event_ids),
                node.system_id,
                node.hostname,
                level,
                kind,
                description,
                datetime.now(UTC),
                action,
            )
        )

    def events(self) -> Iterator[Event]:
        """All events, newest first."""
        everything = (event for node in self.nodes.values() for event in node.events)
        return iter(sorted(everything, key=lambda event: -event.id))

    def by_mac(self, mac: str) -> Node | None:
        return next((node for node in self.nodes.values() if mac.lower() in node.macs), None)

    def by_hostname(self, hostname: str) -> Node | None:
        return next((node for node in self.nodes.values() if node.hostname == hostname), None)
