"""What `findmnt --json` says of a mounted file system."""

from __future__ import annotations

import re
from dataclasses import dataclass

import pydantic

from clusterctl.fleet.errors import ParseError

_WHERE = "findmnt"


@dataclass(frozen=True, slots=True)
class Mount:
    """`options` as in /proc/mounts: `rw`, `relatime` …; `device` as `259:2`, empty where it was not asked for."""

    target: str
    source: str
    filesystem: str
    options: frozenset[str]
    device: str = ""


class _Row(pydantic.BaseModel):
    target: str
    source: str
    fstype: str
    options: str
    device: str = pydantic.Field("", alias="maj:min")


class _Document(pydantic.BaseModel):
    filesystems: tuple[_Row, ...]


def parse_findmnt(text: str) -> tuple[Mount, ...]:
    """Read `findmnt --json --output TARGET,SOURCE,FSTYPE,OPTIONS[,MAJ:MIN]`; a later mount of a target covers an
    earlier one.
    """
    try:
        document = _Document.model_validate_json(text)
    except pydantic.ValidationError as error:
        first = error.errors(include_input=False, include_url=False)[0]
        raise ParseError(f"not understood: {first['msg']}", where=_WHERE) from None
    rows = document.filesystems
    return tuple(
        Mount(row.target, row.source, row.fstype, frozenset(row.options.split(",")), row.device.strip()) for row in rows
    )


_OCTAL = re.compile(r"\\([0-7]{3})")
NO_TARGET = frozenset({"none", "swap"})
"""What stands for a mount point where there is none."""


@dataclass(frozen=True, slots=True)
class MountEntry:
    """`target`: an absolute path, or one of `NO_TARGET`."""

    source: str
    target: str
    filesystem: str
    options: frozenset[str]


def parse_mount_table(text: str, *, where: str) -> tuple[MountEntry, ...]:
    """Every entry, comments left out; `ParseError` names `where` and the line."""
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
    """Blanks and the like are written in octal: 040 behind a backslash."""
    return _OCTAL.sub(lambda found: chr(int(found[1], 8)), field)
