"""What was added to a job's log: the answer of `clusterctl_burnin/node/job_tail.py`."""

from __future__ import annotations

import base64
import binascii
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Literal

from clusterctl.fleet.errors import ParseError
from clusterctl.fleet.peer_text import visible_line
from clusterctl.formats.documents import read_document


@dataclass(frozen=True, slots=True, kw_only=True)
class _Log:
    offset: int = 0
    content: str = ""
    error: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Events:
    file: str = ""
    start: int = 0
    offset: int = 0
    content: str = ""
    error: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Answer:
    version: Literal[1]
    log: _Log
    events: _Events = field(default_factory=_Events)
    heartbeat: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class EventsPiece:
    """What an event file has from `start` on; `error`: why it could not be read."""

    file: str = ""
    start: int = 0
    content: bytes = b""
    error: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tail:
    """`content` up to `offset`; `error`: why the log could not be read; `heartbeat`: when its file was written."""

    offset: int
    content: bytes = b""
    error: str = ""
    heartbeat: datetime | None = None
    events: EventsPiece = EventsPiece()


def parse_tail(text: str, *, where: str) -> Tail:
    """Return the answer. Raises `ParseError`."""
    answer = read_document(_Answer, text, where)
    try:
        content = base64.b64decode(answer.log.content, validate=True)
        events = base64.b64decode(answer.events.content, validate=True)
        beat = datetime.fromtimestamp(answer.heartbeat, UTC) if answer.heartbeat is not None else None
    except (binascii.Error, ValueError, OverflowError, OSError):
        raise ParseError("the log's content could not be unpacked", where=where) from None
    return Tail(
        offset=max(0, answer.log.offset),
        content=content,
        error=visible_line(answer.log.error, 200),
        heartbeat=beat,
        events=EventsPiece(
            file=answer.events.file,
            start=max(0, answer.events.start),
            content=events,
            error=visible_line(answer.events.error, 200),
        ),
    )
