"""The JSON document of the node's built-in `nvme-health`: each drive's SMART / Health Information log.

The log's keys are those of nvme-cli's JSON (github.com/linux-nvme/nvme-cli), its meaning that of the NVM Express Base
Specification, log page 02h.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

import pydantic

from clusterctl.fleet.errors import ParseError

_HEALTH = "nvme-health"
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


class _HealthDrive(pydantic.BaseModel):
    name: str
    serial: str
    model: str
    code: int
    said: str
    log: dict[str, Any] | None


class _HealthDocument(pydantic.BaseModel):
    drives: tuple[_HealthDrive, ...]


def parse_nvme_health(text: str) -> tuple[NvmeDrive, ...]:
    """All NVMe drives of the node; `ParseError` where it is no such document, or a log lacks a figure."""
    try:
        document = _HealthDocument.model_validate_json(text)
    except pydantic.ValidationError as error:
        raise _not_understood(error, _HEALTH) from None
    return tuple(
        NvmeDrive(drive.name, drive.serial, drive.model, _health(drive), drive.said) for drive in document.drives
    )


def _health(drive: _HealthDrive) -> DriveHealth | None:
    if drive.log is None:
        return None
    try:
        log = _Log.model_validate(drive.log)
    except pydantic.ValidationError as error:
        raise _not_understood(error, f"{_HEALTH} {drive.name}") from None
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


_READ = "nvme-read"
NOT_INSTALLED = 127
Rate = Annotated[float, pydantic.Field(ge=0, allow_inf_nan=False)]
_NS = 1e-6
"""Milliseconds in a nanosecond."""


@dataclass(frozen=True, slots=True)
class DriveRead:
    """What was read from one drive.

    said     what fio complained of; empty where it did not
    code     fio's exit code
    error    the errno of a read that failed; 0 where none did, None where fio gave no figures
    iops     reads a second; None where fio gave no figures
    p99_ms   99 of 100 reads were answered within so many milliseconds; None where nothing was read
    seconds  for so long it read, without the ramp
    """

    name: str
    serial: str
    model: str
    said: str
    code: int
    error: int | None
    iops: float | None
    p99_ms: float | None
    seconds: float


class _Percentiles(pydantic.BaseModel):
    percentile: dict[str, Count] = {}


class _Direction(pydantic.BaseModel):
    total_ios: Count
    iops: Rate
    runtime: Count
    clat_ns: _Percentiles


class _Job(pydantic.BaseModel):
    error: Count
    read: _Direction
    write: _Direction
    trim: _Direction


class _Fio(pydantic.BaseModel):
    jobs: Annotated[tuple[_Job, ...], pydantic.Field(min_length=1, max_length=1)]


class _ReadDrive(pydantic.BaseModel):
    name: Annotated[str, pydantic.Field(min_length=1)]
    serial: str
    model: str
    code: int
    said: str
    fio: _Fio | None


class _ReadDocument(pydantic.BaseModel):
    drives: tuple[_ReadDrive, ...]


def parse_nvme_read(text: str) -> tuple[DriveRead, ...]:
    """Every drive that was read; `ParseError` where it is no such document, or fio did anything but read."""
    try:
        document = _ReadDocument.model_validate_json(text)
    except pydantic.ValidationError as error:
        first = error.errors(include_input=False, include_url=False)[0]
        field = ".".join(str(part) for part in first["loc"])
        raise ParseError(f"not understood: {first['msg']}", where=f"{_READ} {field}".strip()) from None
    return tuple(_drive(drive) for drive in document.drives)


def _drive(drive: _ReadDrive) -> DriveRead:
    if drive.fio is None:
        return DriveRead(drive.name, drive.serial, drive.model, drive.said, drive.code, None, None, None, 0.0)
    job = drive.fio.jobs[0]
    if job.write.total_ios or job.trim.total_ios:
        raise ParseError("fio wrote or trimmed, which it was not to", where=f"{_READ} {drive.name}")
    slowest = job.read.clat_ns.percentile.get("99.000000")
    return DriveRead(
        name=drive.name,
        serial=drive.serial,
        model=drive.model,
        said=drive.said,
        code=drive.code,
        error=job.error,
        iops=job.read.iops,
        p99_ms=None if slowest is None or not job.read.total_ios else slowest * _NS,
        seconds=job.read.runtime / 1000,
    )
