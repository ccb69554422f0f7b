"""Block devices of a host: `lsblk --json`, and the drive fingerprints of the node's own `fingerprints.py`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Annotated

from clusterctl.fleet.hardware.disk_contract import KernelDrive, same_identity
from clusterctl.formats.documents import Alias, read_document

LSBLK = ("lsblk", "--json", "--bytes", "--output", "NAME,PATH,MAJ:MIN,TYPE,SIZE,MODEL,SERIAL,WWN,FSTYPE,PTTYPE")
"""The command. Its tree lists each device below all of its parts: a RAID below each of its disks."""
_WHERE = "lsblk"


@dataclass(frozen=True, slots=True)
class BlockDevice:
    """One device: number (`259:2`) and lsblk's type (`disk`, `part`, `lvm`, `raid1`, `crypt`, `mpath`, `loop` …).

    `drive` is its identity; only whole disks report serial and WWN. `above` are the devices that are built on it.
    `signature` names its file system or partition table (`ext4`, `gpt`); empty where there is none, or none was read.
    """

    device: str
    kind: str
    drive: KernelDrive
    above: tuple[BlockDevice, ...] = ()
    signature: str = ""

    @property
    def signed(self) -> bool:
        """Return whether a signature was read on it, or on a device above it."""
        return bool(self.signature) or any(one.signed for one in self.above)

    def holds(self, device: str, path: str) -> bool:
        """Return whether this device, or one above it, has this number or this path."""
        same = self.device == device or self.drive.path == path
        return same or any(one.holds(device, path) for one in self.above)


@dataclass(frozen=True, slots=True)
class _Row:
    path: str
    device: Annotated[str, Alias("maj:min")]
    type: str
    size: int
    model: str | None = None
    serial: str | None = None
    wwn: str | None = None
    fstype: str | None = None
    pttype: str | None = None
    children: tuple[_Row, ...] = ()


@dataclass(frozen=True, slots=True)
class _Document:
    blockdevices: tuple[_Row, ...]


def parse_lsblk(text: str) -> tuple[BlockDevice, ...]:
    """Return the devices of `LSBLK`'s output that lie on no other device, each with all devices above it."""
    document = read_document(_Document, text, _WHERE)
    return tuple(_device(row) for row in document.blockdevices)


def whole_disks(devices: Iterable[BlockDevice]) -> tuple[BlockDevice, ...]:
    """Return each whole disk once: paths to one disk (multipath) have the same WWN or serial."""
    found: list[BlockDevice] = []
    for one in devices:
        if one.kind == "disk" and not any(_same(one.drive, other.drive) for other in found):
            found.append(one)
    return tuple(found)


def below(devices: Iterable[BlockDevice], device: str, path: str) -> tuple[BlockDevice, ...]:
    """Return the lowest devices below `device`: whole disks, or others that lie on nothing (`loop`).

    Empty where lsblk does not list the device.
    """
    return tuple(_unrepeated(one for one in devices if one.holds(device, path)))


def _unrepeated(devices: Iterable[BlockDevice]) -> Iterator[BlockDevice]:
    held = tuple(devices)
    disks = whole_disks(held)
    return (one for one in held if one.kind != "disk" or one in disks)


def _same(one: KernelDrive, other: KernelDrive) -> bool:
    return same_identity(one.wwn, other.wwn) or (not one.wwn and same_identity(one.serial, other.serial))


def _device(row: _Row) -> BlockDevice:
    signature = (row.fstype or row.pttype or "").strip()
    drive = KernelDrive(
        row.path,
        (row.serial or "").strip(),
        (row.wwn or "").strip(),
        (row.model or "").strip(),
        row.size,
        content=signature or ("other devices" if row.children else ""),
    )
    return BlockDevice(row.device.strip(), row.type, drive, tuple(_device(child) for child in row.children), signature)


@dataclass(frozen=True, slots=True)
class Fingerprint:
    """SHA-256 over parts of a drive, or the reason why they could not be read."""

    digest: str
    error: str


@dataclass(frozen=True, slots=True)
class _FingerprintRow:
    fingerprint: str = ""
    error: str = ""


def parse_fingerprints(text: str) -> Mapping[str, Fingerprint]:
    """Return the fingerprints by the drive's path."""
    rows = read_document(dict[str, _FingerprintRow], text, "fingerprints")
    return {path: Fingerprint(row.fingerprint, row.error) for path, row in rows.items()}
