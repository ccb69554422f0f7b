"""Where an installed drive has its root file system, read from outside: GUID partition table and ext4's superblock.

Offsets: UEFI 2.10, 5.3.2 and 5.3.3; the kernel's documentation of ext4 (filesystems/ext4/super.html).
"""

from __future__ import annotations

import os
import struct
import uuid
from dataclasses import dataclass
from pathlib import Path

from clusterctl_lab.metal.drives import BLOCK, GPT

ROOT_OF_X86_64 = uuid.UUID("4f68bce3-e8cd-4db1-96e7-fbcaf984b709")
"""The partition's type, as the Discoverable Partitions Specification has it."""
_SUPERBLOCK = 1024
_MAGIC = 0xEF53
_NEEDS_RECOVERY = 0x4
_MOST_ENTRIES = 256


@dataclass(frozen=True, slots=True)
class RootFileSystem:
    """`offset` in bytes from the drive's beginning; `uuid` is new at each mkfs; `clean`: it was unmounted, so that its
    journal holds nothing that is not in it.
    """

    offset: int
    uuid: str
    clean: bool


def root_file_system(drive: Path) -> RootFileSystem | None:
    """None where there is no drive, no partition of that type, or no ext4 in it."""
    try:
        with drive.open("rb") as file:
            offset = _partition(file.fileno())
            return _ext4(file.fileno(), offset) if offset else None
    except FileNotFoundError:
        return None


def _partition(descriptor: int) -> int:
    """Where the root partition begins; 0 where there is none."""
    header = os.pread(descriptor, BLOCK, BLOCK)
    if not header.startswith(GPT):
        return 0
    table, entries, size = struct.unpack_from("<QII", header, 72)
    for number in range(min(entries, _MOST_ENTRIES)):
        entry = os.pread(descriptor, size, table * BLOCK + number * size)
        if len(entry) == size and entry[:16] == ROOT_OF_X86_64.bytes_le:
            return int(struct.unpack_from("<Q", entry, 32)[0]) * BLOCK
    return 0


def _ext4(descriptor: int, offset: int) -> RootFileSystem | None:
    block = os.pread(descriptor, _SUPERBLOCK, offset + _SUPERBLOCK)
    if len(block) < _SUPERBLOCK or struct.unpack_from("<H", block, 0x38)[0] != _MAGIC:
        return None
    (incompatible,) = struct.unpack_from("<I", block, 0x60)
    return RootFileSystem(offset, str(uuid.UUID(bytes=block[0x68:0x78])), not incompatible & _NEEDS_RECOVERY)
