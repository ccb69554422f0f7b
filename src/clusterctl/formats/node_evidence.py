"""What a node holds of a job: the answer of `clusterctl_burnin/node/job_evidence.py`.

Files are packed (zlib, base64). A node's answer is bounded by the shell; what it unpacks to is bounded here.
"""

from __future__ import annotations

import base64
import binascii
import re
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Annotated, Literal

from clusterctl.fleet.errors import ParseError
from clusterctl.fleet.peer_text import visible_line
from clusterctl.formats.documents import Within, read_document

MAX_FILES = 2000
MAX_BYTES = 96 << 20
_LATEST = 1 << 33
"""Seconds since 1970: a later time is no time of a clock."""
_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,159}")
_OFFSET = re.compile(r"([+-]\d\d):?(\d\d)")


@dataclass(frozen=True, slots=True, kw_only=True)
class _File:
    name: Annotated[str, Within(max_length=160)]
    content: str


@dataclass(frozen=True, slots=True, kw_only=True)
class _Answer:
    version: Literal[1]
    utc_offset: str = ""
    booted: int = 0
    addresses: tuple[Annotated[str, Within(max_length=64)], ...] = ()
    ranks: Mapping[str, int] = field(default_factory=dict)
    files: tuple[_File, ...] = ()
    missing: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeFiles:
    """The files of one node by name; `missing`: what was not read.

    `utc_offset` as `+02:00`, empty where unknown; `booted`: when the node did, None where unknown.
    """

    files: Mapping[str, bytes] = field(default_factory=dict)
    utc_offset: str = ""
    booted: datetime | None = None
    addresses: tuple[str, ...] = ()
    ranks: tuple[int, ...] = ()
    missing: tuple[str, ...] = ()


def parse_node_files(text: str, *, where: str) -> NodeFiles:
    """Return the node's answer. Raises `ParseError`; a file that cannot be unpacked is missing, and no more."""
    answer = read_document(_Answer, text, where)
    if len(answer.files) > MAX_FILES:
        raise ParseError(f"it has more than {MAX_FILES} files", where=where)
    files, lost = _files(answer)
    offset = _OFFSET.fullmatch(answer.utc_offset)
    return NodeFiles(
        files=files,
        utc_offset=f"{offset[1]}:{offset[2]}" if offset else "",
        booted=datetime.fromtimestamp(answer.booted, UTC) if 0 < answer.booted < _LATEST else None,
        addresses=tuple(visible_line(one, 64) for one in answer.addresses[:64]),
        ranks=tuple(int(rank) for rank in answer.ranks if rank.isascii() and rank.isdigit() and len(rank) < 8),
        missing=(*(visible_line(one, 300) for one in answer.missing[:100]), *lost),
    )


def _files(answer: _Answer) -> tuple[dict[str, bytes], list[str]]:
    """Return the files by name, and a message for each that could not be unpacked."""
    files: dict[str, bytes] = {}
    lost = []
    left = MAX_BYTES
    for file in answer.files:
        content = _unpacked(file.content, left) if _NAME.fullmatch(file.name) else None
        if content is None:
            lost.append(f"{visible_line(file.name, 160)}: its content could not be unpacked")
            continue
        left -= len(content)
        files[file.name] = content
    return files, lost


def _unpacked(content: str, most: int) -> bytes | None:
    """Return the content; None where it is damaged or larger than `most` bytes."""
    try:
        packed = base64.b64decode(content, validate=True)
        unpacker = zlib.decompressobj()
        found = unpacker.decompress(packed, most + 1)
    except (binascii.Error, ValueError, zlib.error):
        return None
    return found if len(found) <= most and unpacker.eof else None
