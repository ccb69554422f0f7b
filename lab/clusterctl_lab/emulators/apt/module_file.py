"""A kernel module's file that says who it is and does nothing: an ELF object with a `.modinfo` section and no code.

depmod indexes it and modinfo reads it, as they do real ones (kmod reads section `.modinfo`, libkmod-elf.c); the kernel
would refuse to load it.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping

_RELOCATABLE, _X86_64, _STRING_TABLE, _PROGRAM_BITS, _ALLOCATED = 1, 62, 3, 1, 2
_HEADER_BYTES, _SECTION_BYTES = 64, 64
_NAMES = b"\0.modinfo\0.shstrtab\0"


def module_file(fields: Mapping[str, str]) -> bytes:
    """The file's content; `fields` are those that `modinfo` prints, such as `version`."""
    info = b"".join(f"{key}={value}".encode() + b"\0" for key, value in fields.items())
    sections = _HEADER_BYTES + len(info) + len(_NAMES)
    padding = -sections % 8
    identity = b"\x7fELF" + bytes((2, 1, 1)) + bytes(9)  # 64 bits, little-endian, version 1
    header = identity + struct.pack(
        "<HHIQQQIHHHHHH",
        *(_RELOCATABLE, _X86_64, 1, 0, 0, sections + padding, 0),
        *(_HEADER_BYTES, 0, 0, _SECTION_BYTES, 3, 2),
    )
    table = (
        _section(0, 0, 0, 0, 0)
        + _section(_NAMES.index(b".modinfo"), _PROGRAM_BITS, _ALLOCATED, _HEADER_BYTES, len(info))
        + _section(_NAMES.index(b".shstrtab"), _STRING_TABLE, 0, _HEADER_BYTES + len(info), len(_NAMES))
    )
    return header + info + _NAMES + bytes(padding) + table


def _section(name: int, kind: int, flags: int, offset: int, size: int) -> bytes:
    return struct.pack("<IIQQQQIIQQ", name, kind, flags, 0, offset, size, 0, 0, 1, 0)


def module_package_script(name: str, fields: Mapping[str, str]) -> str:
    """A `postinst` that puts the module where DKMS would: below the running kernel's modules, indexed by depmod."""
    octal = "".join(f"\\{byte:03o}" for byte in module_file(fields))
    return f"""\
#!/bin/sh
set -e
[ "$1" = configure ] || exit 0
folder="/lib/modules/$(uname -r)/updates/dkms"
mkdir -p "$folder"
printf '{octal}' > "$folder/{name}.ko"
depmod --all
"""
