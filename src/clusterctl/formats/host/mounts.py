"""Mounted file systems: `findmnt --json`, `/etc/fstab` (fstab(5)), `/proc/self/mounts` (proc_pid_mounts(5))."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Annotated

from clusterctl.fleet.errors import ParseError
from clusterctl.formats.documents import Alias, read_document

_WHERE = "findmnt"


@dataclass(frozen=True, slots=True)
class Mount:
    """A mounted file system: options (`rw`, `relatime` …), and device number (`259:2`, empty where not requested)."""

    target: str
    source: str
    filesystem: str
    options: frozenset[str]
    device: str = ""


@dataclass(frozen=True, slots=True)
class _Row:
    target: str
    source: str
    fstype: str
    options: str
    device: Annotated[str, Alias("maj:min")] = ""


@dataclass(frozen=True, slots=True)
class _Document:
    filesystems: tuple[_Row, ...]


def parse_findmnt(text: str) -> tuple[Mount, ...]:
    """Return the mounts of `findmnt --json --output TARGET,SOURCE,FSTYPE,OPTIONS[,MAJ:MIN]`, in order.

    A later mount of a target hides an earlier one.
    """
    document = read_document(_Document, text, _WHERE)
    rows = document.filesystems
    return tuple(
        Mount(row.target, row.source, row.fstype, frozenset(row.options.split(",")), row.device.strip()) for row in rows
    )


_OCTAL = re.compile(r"\\([0-7]{3})")
NO_TARGET = frozenset({"none", "swap"})
"""Values in place of a mount point where there is none."""


@dataclass(frozen=True, slots=True)
class MountEntry:
    """One line. `target` is an absolute path, or one of `NO_TARGET`."""

    source: str
    target: str
    filesystem: str
    options: frozenset[str]


def parse_mount_table(text: str, *, where: str) -> tuple[MountEntry, ...]:
    """Return every entry, without comments. Raises `ParseError` that names `where` and the line."""
    lines = enumerate(text.splitlines(), start=1)
    return tuple(_entry(line, f"{where} line {at}") for at, line in lines if line.strip() and line.strip()[0] != "#")


def _entry(line: str, where: str) -> MountEntry:
    fields = line.split()
    if not 3 <= len(fields) <= 6:
        raise ParseError(f"{len(fields)} columns, an entry has 3 to 6", where=where)
    source, target, filesystem = map(_plain, fields[:3])
    if not target.startswith("/") and target not in NO_TARGET:
        raise ParseError("the mount point is no absolute path", where=where)
    options = frozenset(_plain(fields[3]).split(",")) if len(fields) > 3 else frozenset({"defaults"})
    return MountEntry(source, target.rstrip("/") or "/", filesystem, options)


def _plain(field: str) -> str:
    """Decode blanks and other characters that are written in octal (space is 040 after a backslash)."""
    return _OCTAL.sub(lambda found: chr(int(found[1], 8)), field)
