"""What `findmnt --json` says of a mounted file system."""

from __future__ import annotations

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
