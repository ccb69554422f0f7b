"""Kernel, initial file system and command line as one EFI program."""

from __future__ import annotations

import struct
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as some

from clusterctl.fleet.errors import ParseError
from clusterctl.formats.unified_kernel import unified_kernel

OPTIONAL = 0x98
TABLE = OPTIONAL + 240
KERNEL, INITRD = b"K" * 70_001, b"I" * 513


def stub(room: int = 8, sections: int = 2, magic: int = 0x20B) -> bytes:
    """An EFI program as systemd's stub is laid out: PE32+, file alignment 512, room for so many sections in all."""
    first = TABLE + room * 40
    first += -first % 512
    head = bytearray(first)
    head[:2] = b"MZ"
    struct.pack_into("<I", head, 0x3C, 0x80)
    struct.pack_into("<4sHH12xH", head, 0x80, b"PE\0\0", 0x8664, sections, 240)
    struct.pack_into("<H", head, OPTIONAL, magic)
    struct.pack_into("<II", head, OPTIONAL + 32, 4096, 512)
    struct.pack_into("<I", head, OPTIONAL + 64, 0xABCD)
    for number in range(sections):
        place = (f".s{number}".encode(), 300, 0x4000 + number * 0x1000, 512, first + number * 512, 0, 0, 0, 0, 0)
        struct.pack_into("<8sIIIIIIHHI", head, TABLE + number * 40, *place)
    return bytes(head) + b"S" * (512 * sections)


def sections_of(image: bytes) -> dict[str, tuple[int, int, bytes]]:
    """By name: address in memory, offset in the file, content."""
    (count,) = struct.unpack_from("<H", image, 0x86)
    found = {}
    for number in range(count):
        name, size, address, _, offset = struct.unpack_from("<8sIIII", image, TABLE + number * 40)
        found[name.rstrip(b"\0").decode()] = (address, offset, image[offset : offset + size])
    return found


def made(command_line: str, base: bytes) -> bytes:
    parts = unified_kernel(base, command_line, len(KERNEL), len(INITRD))
    return parts.head + KERNEL + bytes(parts.kernel_padding) + INITRD + bytes(parts.initrd_padding)


def test_the_parts_are_sections_of_the_program() -> None:
    """What the stub reads at run time is what was put in; the stub's own sections are where they were."""
    image = made("console=ttyS0 clusterctl.token=abc", stub())
    found = sections_of(image)
    assert list(found) == [".s0", ".s1", ".cmdline", ".linux", ".initrd"]
    assert found[".cmdline"][2] == b"console=ttyS0 clusterctl.token=abc"
    assert (found[".linux"][2], found[".initrd"][2]) == (KERNEL, INITRD)
    assert sections_of(stub())[".s1"] == found[".s1"]


def test_firmware_can_load_it() -> None:
    """In memory nothing overlaps and each section begins a page; in the file each begins a sector; no stale checksum."""
    image = made("quiet", stub())
    places = sorted((address, len(content)) for address, _, content in sections_of(image).values())
    for (address, size), (following, _) in pairwise(places):
        assert address % 4096 == 0
        assert address + size <= following
    assert all(offset % 512 == 0 for _, offset, _ in sections_of(image).values())
    size, checksum = struct.unpack_from("<I4xI", image, OPTIONAL + 56)
    assert size % 4096 == 0
    assert size >= places[-1][0] + places[-1][1]
    assert checksum == 0
    assert len(image) % 512 == 0


@pytest.mark.parametrize(
    ("base", "reason"),
    [
        (b"", "no EFI program"),
        (b"MZ" + bytes(4096), "no 64-bit EFI program"),
        (stub(magic=0x10B), "no 64-bit EFI program"),
        (stub(sections=0), "no 64-bit EFI program"),
        (stub(room=15, sections=15), "no room"),
    ],
)
def test_what_is_no_stub_is_refused(base: bytes, reason: str) -> None:
    """With the reason; nothing is made of it."""
    with pytest.raises(ParseError, match=reason):
        unified_kernel(base, "quiet", 1, 1)


def test_a_command_line_that_linux_would_cut_is_refused() -> None:
    """2047 characters fit with the final zero, and no more."""
    unified_kernel(stub(), "a" * 2047, 1, 1)
    with pytest.raises(ParseError, match="more than 2047 bytes"):
        unified_kernel(stub(), "a" * 2048, 1, 1)


@given(some.binary(max_size=2048), some.integers(0, 1200), some.binary(max_size=64))
def test_any_bytes_are_a_stub_or_an_error(base: bytes, at: int, change: bytes) -> None:
    """Neither random bytes nor a damaged stub raise anything else."""
    good = stub()
    for candidate in (base, good[:at] + change + good[at + len(change) :]):
        try:
            unified_kernel(candidate, "quiet", 10, 10)
        except ParseError:
            continue
