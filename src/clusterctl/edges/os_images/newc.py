"""A folder written as an initramfs: a cpio archive in the `newc` format (the kernel's early-userspace document)."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

_ALIGN = 4
_CONSOLE = (5, 1)


@dataclass(frozen=True, slots=True)
class _Entry:
    """`device`: major and minor number, for a device."""

    name: str
    mode: int
    content: bytes = b""
    device: tuple[int, int] = (0, 0)


def write_newc(root: Path, out: BinaryIO) -> None:
    """Everything below `root`, in the order of names, owned by root, all times 0; and the device /dev/console, which
    the kernel opens for init before anything is mounted.
    """
    for inode, entry in enumerate(_entries(root), start=1):
        _write(out, inode, entry)
    _write(out, 0, _Entry("TRAILER!!!", 0))


def _entries(root: Path) -> Iterator[_Entry]:
    for path in _below(root):
        mode = path.lstat().st_mode
        yield _Entry(str(path.relative_to(root)), mode, _content(path, mode))
    yield _Entry("dev/console", stat.S_IFCHR | 0o600, device=_CONSOLE)


def _below(root: Path) -> Iterator[Path]:
    """A folder before what it holds; links to folders are not followed."""
    for path in sorted(root.iterdir()):
        yield path
        if path.is_dir() and not path.is_symlink():
            yield from _below(path)


def _content(path: Path, mode: int) -> bytes:
    if stat.S_ISLNK(mode):
        return os.fsencode(path.readlink())
    return path.read_bytes() if stat.S_ISREG(mode) else b""


def _write(out: BinaryIO, inode: int, entry: _Entry) -> None:
    name = os.fsencode(entry.name) + b"\0"
    links = 2 if stat.S_ISDIR(entry.mode) else 1
    fields = (inode, entry.mode, 0, 0, links, 0, len(entry.content), 0, 0, *entry.device, len(name), 0)
    header = b"070701" + b"".join(f"{value:08X}".encode() for value in fields)
    _padded(out, header + name)
    _padded(out, entry.content)


def _padded(out: BinaryIO, content: bytes) -> None:
    out.write(content + bytes(-len(content) % _ALIGN))
