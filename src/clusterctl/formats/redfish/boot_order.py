"""The persistent boot order: which of its entries are disks (DMTF ComputerSystem `BootOrder`, BootOption)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from clusterctl.fleet.errors import EdgeError, ParseError
from clusterctl.fleet.node import Serial
from clusterctl.formats.redfish import storage, system
from clusterctl.formats.redfish.boot import settings_of
from clusterctl.formats.redfish.tree import Answers, NotYetReadError, Resource, Tree, Wanted

_NETWORK = re.compile(r"MAC\(|IPv[46]\(|Uri\(|\bPXE\b|\bHTTPS?\b|\bNIC\b|Network", re.IGNORECASE)
_DISK_PATH = re.compile(r"\b(NVMe|HD|Sata|Scsi|SasEx|SAS|UFS|eMMC|RAID)\(", re.IGNORECASE)
_NO_DISK = re.compile(r"unavailable|.*\bshell\b", re.IGNORECASE)
_ANY_NAME = re.compile(r"((uefi )?boot option)?", re.IGNORECASE)
_BY_HAND = "set the boot order in the BIOS"
_DISK_NAME = re.compile(
    r"\b(NVMe|SSD|HDD|hard (disk|drive)|fixed disk|RAID|SATA|SAS|ubuntu|debian|rocky|red hat|rhel|linux)\b",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class BootOrder:
    """`order` as it stands, and as it will after the next boot where that is told; `disks` those of it that are."""

    serial: Serial
    path: str
    etag: str
    order: tuple[str, ...]
    pending: tuple[str, ...]
    disks: frozenset[str]

    @property
    def from_disk(self) -> tuple[str, ...]:
        """The same entries, disks first; `EdgeError` where there is no disk among them."""
        if not self.disks:
            raise EdgeError(
                "the machine's boot order names no disk",
                where=f"{self.path} Boot.BootOrder",
                remedy="install an OS first: it registers its disk; or look at the BIOS's boot settings",
            )
        first = [entry for entry in self.order if entry in self.disks]
        return (*first, *(entry for entry in self.order if entry not in self.disks))

    @property
    def disk_first(self) -> bool:
        """Whether it begins with a disk, now or from the next boot on."""
        return (self.pending or self.order)[0] in self.disks

    @property
    def body(self) -> Mapping[str, Any]:
        return {"Boot": {"BootOrder": list(self.from_disk)}}

    def __str__(self) -> str:
        return f"boot order {', '.join(self.pending or self.order)}"


def read_boot_order(answers: Answers) -> BootOrder | Wanted:
    """Raises `ParseError` or `EdgeError` where the machine, its order or the meaning of its entries is not told."""
    tree = Tree(answers)
    try:
        host = system.host_system(tree)
        serial = system.serial_of(tree, host)
        options = tree.members(host, "Boot", "BootOptions")
        settings = settings_of(tree, host)
        disks = [option for option in options if is_disk(option)] or _by_model(tree, options, host)
    except NotYetReadError:
        return Wanted(tuple(tree.wanted))
    order = host.texts("Boot", "BootOrder")
    if not order:
        raise EdgeError("the BMC tells no boot order", where=host.where("Boot", "BootOrder"), remedy=_BY_HAND)
    place = settings if settings is not None and settings.texts("Boot", "BootOrder") else host
    names = set(map(_reference, disks))
    pending = place.texts("Boot", "BootOrder") if place is not host else ()
    return BootOrder(
        serial, place.path, place.text("@odata.etag"), order, pending, frozenset(names).intersection(order)
    )


def _by_model(tree: Tree, options: tuple[Resource, ...], host: Resource) -> list[Resource]:
    """Entries that name a drive of the machine by its model, where neither path nor name says that it is a disk.

    Raises what keeps it from being told, where there is an entry in the order that it could be.
    """
    order = host.texts("Boot", "BootOrder")
    unsure = [option for option in options if _reference(option) in order and _could_be(option)]
    if not unsure:
        return []
    untold = next((option for option in unsure if not (_label(option) or option.text("UefiDevicePath"))), None)
    if untold is not None:
        raise ParseError("the BMC does not tell what this entry boots", where=untold.where("DisplayName"))
    drives = storage.drive_resources(tree)
    models = {drive.text("Model") for drive in drives} - {""}
    found = [option for option in unsure if any(model in _label(option) for model in models)]
    silent = next((drive for drive in drives if not drive.text("Model")), None)
    if silent is not None and not found:
        raise ParseError("no boot entry is known to be a disk: this drive tells no model", where=silent.where("Model"))
    return found


def _could_be(option: Resource) -> bool:
    """Nothing that it says of itself is against its being a disk."""
    told = (option.text("UefiDevicePath"), _label(option))
    return option.text("Alias") in ("", "None") and not any(map(_NETWORK.search, told)) and not _NO_DISK.match(told[1])


def _label(option: Resource) -> str:
    """What people are shown; `Name` is the same for all entries at most vendors, and the entry's own at few."""
    name = option.text("Name")
    return option.text("DisplayName") or ("" if _ANY_NAME.fullmatch(name) else name)


def _reference(option: Resource) -> str:
    return option.text("BootOptionReference") or option.id


def is_disk(option: Resource) -> bool:
    """By its alias, else its UEFI device path, else its name; what nothing tells is no disk."""
    alias = option.text("Alias")
    if alias not in ("", "None"):
        return alias == "Hdd"
    path, name = option.text("UefiDevicePath"), option.text("DisplayName") or option.text("Name")
    if name.lower().startswith("unavailable"):
        return False  # Dell's word for an entry whose disk is gone
    if _NETWORK.search(path) or _NETWORK.search(name):
        return False
    return bool(_DISK_PATH.search(path) or _DISK_NAME.search(name))
