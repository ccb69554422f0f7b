"""The JSON document of the node's built-in `nvme-health`: each drive's SMART / Health Information log.

The log's keys are those of nvme-cli's JSON (github.com/linux-nvme/nvme-cli), its meaning that of the NVM Express Base
Specification, log page 02h.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

import pydantic

from clusterctl.fleet.errors import ParseError

_WHERE = "nvme-health"
WARNINGS = (
    "its spare blocks are used up",
    "its temperature is outside its limits",
    "it is no longer reliable, after errors of its medium or its own",
    "it has become read-only",
    "the power reserve of its cache has failed",
    "its persistent memory has become read-only or unreliable",
)
"""What the bits of critical_warning mean, from bit 0 on."""
TOO_HOT = WARNINGS[1]


@dataclass(frozen=True, slots=True)
class DriveHealth:
    """`used` and `spare` in percent: of the endurance that its maker warrants (it may exceed 100), and of the spare
    blocks left; `media_errors` in its whole life. `warnings` are words of `WARNINGS`, or of a bit that has none.
    """

    warnings: tuple[str, ...]
    used: int
    spare: int
    spare_threshold: int
    media_errors: int


@dataclass(frozen=True, slots=True)
class NvmeDrive:
    """`name` as the kernel's (`nvme0n1`); `health` is None where it could not be read, and `said` tells why."""

    name: str
    serial: str
    model: str
    health: DriveHealth | None
    said: str


def _plain(value: object) -> object:
    """Some versions of nvme-cli take the bits apart, beside their `value`."""
    return value.get("value") if isinstance(value, dict) else value


Count = Annotated[int, pydantic.Field(ge=0)]


class _Log(pydantic.BaseModel):
    critical_warning: Annotated[Count, pydantic.BeforeValidator(_plain)]
    avail_spare: Count
    spare_thresh: Count
    percent_used: Count
    media_errors: Count


class _Drive(pydantic.BaseModel):
    name: str
    serial: str
    model: str
    code: int
    said: str
    log: dict[str, Any] | None


class _Document(pydantic.BaseModel):
    drives: tuple[_Drive, ...]


def parse_nvme_health(text: str) -> tuple[NvmeDrive, ...]:
    """All NVMe drives of the node; `ParseError` where it is no such document, or a log lacks a figure."""
    try:
        document = _Document.model_validate_json(text)
    except pydantic.ValidationError as error:
        raise _not_understood(error, _WHERE) from None
    return tuple(
        NvmeDrive(drive.name, drive.serial, drive.model, _health(drive), drive.said) for drive in document.drives
    )


def _health(drive: _Drive) -> DriveHealth | None:
    if drive.log is None:
        return None
    try:
        log = _Log.model_validate(drive.log)
    except pydantic.ValidationError as error:
        raise _not_understood(error, f"{_WHERE} {drive.name}") from None
    return DriveHealth(
        _warnings(log.critical_warning), log.percent_used, log.avail_spare, log.spare_thresh, log.media_errors
    )


def _warnings(bits: int) -> tuple[str, ...]:
    named = tuple(words for bit, words in enumerate(WARNINGS) if bits >> bit & 1)
    unnamed = bits >> len(WARNINGS)
    return (*named, f"it warns of something unknown ({bits:#04x})") if unnamed else named


def _not_understood(error: pydantic.ValidationError, where: str) -> ParseError:
    first = error.errors(include_input=False, include_url=False)[0]
    field = ".".join(str(part) for part in first["loc"])
    return ParseError(f"not understood: {first['msg']}", where=f"{where} {field}".strip())
