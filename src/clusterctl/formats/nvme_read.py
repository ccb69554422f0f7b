"""The JSON document of the node's built-in `nvme-read`: what fio says of each NVMe drive that it read from.

fio's JSON: https://fio.readthedocs.io/en/latest/fio_doc.html#json-output.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import pydantic

from clusterctl.fleet.errors import ParseError

_WHERE = "nvme-read"
NOT_INSTALLED = 127
Count = Annotated[int, pydantic.Field(ge=0)]
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


class _Drive(pydantic.BaseModel):
    name: Annotated[str, pydantic.Field(min_length=1)]
    serial: str
    model: str
    code: int
    said: str
    fio: _Fio | None


class _Document(pydantic.BaseModel):
    drives: tuple[_Drive, ...]


def parse_nvme_read(text: str) -> tuple[DriveRead, ...]:
    """Every drive that was read; `ParseError` where it is no such document, or fio did anything but read."""
    try:
        document = _Document.model_validate_json(text)
    except pydantic.ValidationError as error:
        first = error.errors(include_input=False, include_url=False)[0]
        field = ".".join(str(part) for part in first["loc"])
        raise ParseError(f"not understood: {first['msg']}", where=f"{_WHERE} {field}".strip()) from None
    return tuple(_drive(drive) for drive in document.drives)


def _drive(drive: _Drive) -> DriveRead:
    if drive.fio is None:
        return DriveRead(drive.name, drive.serial, drive.model, drive.said, drive.code, None, None, None, 0.0)
    job = drive.fio.jobs[0]
    if job.write.total_ios or job.trim.total_ios:
        raise ParseError("fio wrote or trimmed, which it was not to", where=f"{_WHERE} {drive.name}")
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
