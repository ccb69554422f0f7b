"""The document of the node's built-in `nccl-init`: how often a collective was started, and the start that failed."""

from __future__ import annotations

from typing import Annotated

import pydantic

from clusterctl.formats.documents import read_document

Seconds = Annotated[float, pydantic.Field(ge=0, allow_inf_nan=False)]


class FailedStart(pydantic.BaseModel):
    """The start that failed. `code` is None where it did not end in time; `output` is the end of what it printed."""

    seconds: Seconds
    code: int | None
    output: str


class NcclStarts(pydantic.BaseModel):
    """How many starts were asked for; the seconds of those that ended well; the one that failed, None for none."""

    asked: Annotated[int, pydantic.Field(ge=1)]
    seconds: tuple[Seconds, ...]
    failed: FailedStart | None


def parse_nccl_starts(text: str) -> NcclStarts:
    """Return the starts. Raises `ParseError` for another document."""
    return read_document(NcclStarts, text, where="nccl-init")
