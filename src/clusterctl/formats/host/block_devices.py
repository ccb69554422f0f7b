"""What `lsblk --json` says of block devices, and which whole disks lie below one of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

import pydantic

from clusterctl.fleet.errors import ParseError
from clusterctl.fleet.hardware.disk_contract import SeenDrive, same_identity

LSBLK = ("lsblk", "--json", "--bytes", "--output", "NAME,PATH,MAJ:MIN,TYPE,SIZE,MODEL,SERIAL,WWN")
"""Its tree shows each device below all that it is made of: a RAID below each of its disks."""
_WHERE = "lsblk"


@dataclass(frozen=True, slots=True)
class BlockDevice:
    """`device` as `259:2`; `kind` as lsblk says it (`disk`, `part`, `lvm`, `raid1`, `crypt`, `mpath`, `loop` …).

    `drive` is what it tells of itself; only whole disks tell serial and WWN. `above`: what is made of it.
    """

    device: str
    kind: str
    drive: SeenDrive
    above: tuple[BlockDevice, ...] = ()

    def holds(self, device: str, path: str) -> bool:
        """Whether it is this device, by number or else by path, or something on it is."""
        same = self.device == device or self.drive.path == path
        return same or any(one.holds(device, path) for one in self.above)


class _Row(pydantic.BaseModel):
    path: str
    device: str = pydantic.Field(alias="maj:min")
    type: str
    size: int
    model: str | None = None
    serial: str | None = None
    wwn: str | None = None
    children: tuple[_Row, ...] = ()


class _Document(pydantic.BaseModel):
    blockdevices: tuple[_Row, ...]


def parse_lsblk(text: str) -> tuple[BlockDevice, ...]:
    """Read the output of `LSBLK`: the devices that lie on no other one, with all that is above them."""
    try:
        document = _Document.model_validate_json(text)
    except pydantic.ValidationError as error:
        first = error.errors(include_input=False, include_url=False)[0]
        raise ParseError(f"not understood: {first['msg']}", where=_WHERE) from None
    return tuple(_device(row) for row in document.blockdevices)


def whole_disks(devices: Iterable[BlockDevice]) -> tuple[BlockDevice, ...]:
    """Each drive once: what is reached by several paths (multipath) has one WWN or serial."""
    found: list[BlockDevice] = []
    for one in devices:
        if one.kind == "disk" and not any(_same(one.drive, other.drive) for other in found):
            found.append(one)
    return tuple(found)


def below(devices: Iterable[BlockDevice], device: str, path: str) -> tuple[BlockDevice, ...]:
    """What `device` lies on at last: whole disks, or whatever else lies on nothing (`loop`). Empty where lsblk does
    not know it.
    """
    return tuple(_unrepeated(one for one in devices if one.holds(device, path)))


def _unrepeated(devices: Iterable[BlockDevice]) -> Iterator[BlockDevice]:
    held = tuple(devices)
    disks = whole_disks(held)
    return (one for one in held if one.kind != "disk" or one in disks)


def _same(one: SeenDrive, other: SeenDrive) -> bool:
    return same_identity(one.wwn, other.wwn) or (not one.wwn and same_identity(one.serial, other.serial))


def _device(row: _Row) -> BlockDevice:
    drive = SeenDrive(
        row.path, (row.serial or "").strip(), (row.wwn or "").strip(), (row.model or "").strip(), row.size
    )
    return BlockDevice(row.device.strip(), row.type, drive, tuple(_device(child) for child in row.children))


@dataclass(frozen=True, slots=True)
class Fingerprint:
    """SHA-256 over parts of a drive, or why they could not be read."""

    digest: str
    error: str


class _FingerprintRow(pydantic.BaseModel):
    fingerprint: str = ""
    error: str = ""


_DOCUMENT = pydantic.TypeAdapter(dict[str, _FingerprintRow])


def parse_fingerprints(text: str) -> Mapping[str, Fingerprint]:
    """By the drive's path."""
    try:
        rows = _DOCUMENT.validate_json(text)
    except pydantic.ValidationError as error:
        first = error.errors(include_input=False, include_url=False)[0]
        raise ParseError(f"not understood: {first['msg']}", where="fingerprints") from None
    return {path: Fingerprint(row.fingerprint, row.error) for path, row in rows.items()}
