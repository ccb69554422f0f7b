"""A unified kernel image: one EFI program with kernel, initial file system and command line.

It is systemd's stub (linuxx64.efi.stub(7)) with sections added to it (UAPI group, Unified Kernel Image; Microsoft's PE
format). Firmware starts it as it is, so that whatever verifies this one file verifies all that the machine boots.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from dataclasses import dataclass

from clusterctl.fleet.errors import ParseError

COMMAND_LINE_BYTES = 2048
"""Of Linux on x86 (COMMAND_LINE_SIZE, asm/setup.h), with its final zero."""
_SIGNATURE = b"PE\0\0"
_PE32_PLUS = 0x20B
_DATA = 0x40000040
"""IMAGE_SCN_CNT_INITIALIZED_DATA and IMAGE_SCN_MEM_READ."""
_SECTION = struct.Struct("<8sIIIIIIHHI")
_MOST_STUB = 4 << 20
_PAGE = 4096
_LARGEST = 1 << 30
"""Addresses and sizes have 32 bits."""


@dataclass(frozen=True, slots=True)
class UnifiedKernel:
    """The file's parts in their order: `head` is the stub with the command line in it; then kernel and initial file
    system, each followed by zeros.

    kernel_padding, initrd_padding  bytes of zeros after it
    """

    head: bytes
    kernel_padding: int
    initrd_padding: int


@dataclass(frozen=True, slots=True)
class _Stub:
    """Offsets of fields that change; `table` is where the next section header goes, `first` where content begins."""

    count: int
    count_at: int
    size_at: int
    checksum_at: int
    table: int
    first: int
    section_alignment: int
    file_alignment: int
    memory_end: int


def unified_kernel(stub: bytes, command_line: str, kernel_size: int, initrd_size: int) -> UnifiedKernel:
    """Return the parts of the image. Sizes are in bytes. Raises `ParseError` for a stub that is none, or that has no
    room for more sections, and for a command line that is too long.
    """
    arguments = command_line.encode("ascii", "strict")
    if len(arguments) >= COMMAND_LINE_BYTES:
        raise ParseError(f"the kernel's command line has more than {COMMAND_LINE_BYTES - 1} bytes")
    layout = _read(stub)
    sections = {".cmdline": len(arguments), ".linux": kernel_size, ".initrd": initrd_size}
    if layout.table + len(sections) * _SECTION.size > layout.first:
        raise ParseError("the EFI stub has no room for more sections")
    start = _up(len(stub), layout.file_alignment)
    if max(layout.memory_end, kernel_size, initrd_size) > _LARGEST:
        raise ParseError("the EFI stub, the kernel or the initial file system is too large for one EFI program")
    headers, memory_end = _headers(layout, sections, start)
    out = bytearray(stub.ljust(start, b"\0"))
    out[layout.table : layout.table + len(headers)] = headers
    struct.pack_into("<H", out, layout.count_at, layout.count + len(sections))
    struct.pack_into("<I", out, layout.size_at, memory_end)
    struct.pack_into("<I", out, layout.checksum_at, 0)
    out += arguments + bytes(-len(arguments) % layout.file_alignment)
    return UnifiedKernel(bytes(out), -kernel_size % layout.file_alignment, -initrd_size % layout.file_alignment)


def _headers(layout: _Stub, sections: Mapping[str, int], start: int) -> tuple[bytes, int]:
    """Return the section headers, and the end of the image in memory. `start` is the first one's place in the file."""
    headers = b""
    alignment = max(layout.section_alignment, _PAGE)
    address = _up(layout.memory_end, alignment)
    for name, size in sections.items():
        stored = _up(size, layout.file_alignment)
        headers += _SECTION.pack(name.encode(), size, address, stored, start, 0, 0, 0, 0, _DATA)
        start += stored
        address = _up(address + size, alignment)
    return headers, address


def _read(stub: bytes) -> _Stub:
    try:
        (at,) = struct.unpack_from("<I", stub, 0x3C)
        signature, _, count, optional_size = struct.unpack_from("<4sHH12xH", stub, at)
        optional = at + 24
        (magic,) = struct.unpack_from("<H", stub, optional)
        section_alignment, file_alignment = struct.unpack_from("<II", stub, optional + 32)
        table = optional + optional_size
        sections = [_SECTION.unpack_from(stub, table + number * _SECTION.size) for number in range(count)]
    except struct.error:
        raise ParseError("the EFI stub is no EFI program") from None
    aligned = all(0 < value <= 1 << 16 and not value & (value - 1) for value in (section_alignment, file_alignment))
    if signature != _SIGNATURE or magic != _PE32_PLUS or not aligned or not sections or len(stub) > _MOST_STUB:
        raise ParseError("the EFI stub is no 64-bit EFI program")
    return _Stub(
        count=count,
        count_at=at + 6,
        size_at=optional + 56,
        checksum_at=optional + 64,
        table=table + count * _SECTION.size,
        first=min(section[4] for section in sections if section[3]),
        section_alignment=section_alignment,
        file_alignment=file_alignment,
        memory_end=max(_up(section[2] + section[1], section_alignment) for section in sections),
    )


def _up(value: int, alignment: int) -> int:
    return value + -value % alignment
