"""The document of the node's built-in `nccl-init`: how often a collective was started, and the start that failed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from clusterctl.formats.documents import Figure, Within, read_document


@dataclass(frozen=True, slots=True)
class FailedStart:
    """The start that failed. `code` is None where it did not end in time; `output` is the end of what it printed."""

    seconds: Figure
    code: int | None
    output: str


@dataclass(frozen=True, slots=True)
class NcclStarts:
    """How many starts were asked for; the seconds of those that ended well; the one that failed, None for none."""

    asked: Annotated[int, Within(ge=1)]
    seconds: tuple[Figure, ...]
    failed: FailedStart | None


def parse_nccl_starts(text: str) -> NcclStarts:
    """Return the starts. Raises `ParseError` for another document."""
    return read_document(NcclStarts, text, where="nccl-init")
