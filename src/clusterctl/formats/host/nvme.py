"""NVMe drives: the JSON documents of the node's built-in `nvme-health` and `nvme-read`.

The health log has the keys of nvme-cli's JSON (github.com/linux-nvme/nvme-cli); their meaning is that of the NVM
Express Base Specification, log page 02h. `nvme-read` carries fio's JSON
(https://fio.readthedocs.io/en/latest/fio_doc.html#json-output).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any

from clusterctl.fleet.errors import ParseError
from clusterctl.formats.documents import Count, Figure, Text, Within, read_document, read_value

_HEALTH = "nvme-health"
WARNINGS = (
    "its spare blocks are used up",
    "its temperature is outside its limits",
    "it is no longer reliable, after errors of its medium or its own",
    "it has become read-only",
    "the power reserve of its cache has failed",
    "its persistent memory has become read-only or unreliable",
)
"""Meaning of each bit of critical_warning, from bit 0."""
TOO_HOT = WARNINGS[1]


@dataclass(frozen=True, slots=True)
class DriveHealth:
    """The health log of one drive.

    warnings      texts of `WARNINGS`, or one text for bits without a known meaning
    used          % of the warranted endurance; it may exceed 100
    spare         % of the spare blocks that are left; `spare_threshold` is the maker's lower limit
    media_errors  over the drive's whole life
    lost_blocks   addresses (LBA) of the error log's entries for data that could not be read or written; None where the
                  drive's error log was not read
    """

    warnings: tuple[str, ...]
    used: int
    spare: int
    spare_threshold: int
    media_errors: int
    lost_blocks: tuple[int, ...] | None = None


@dataclass(frozen=True, slots=True)
class NvmeDrive:
    """A drive by its kernel name (`nvme0n1`). `health` is None where the log is unreadable; `output` is the reason.

    `boot`: the running system's root or boot partition is on it.
    """

    name: str
    serial: str
    model: str
    health: DriveHealth | None
    output: str
    boot: bool = False


@dataclass(frozen=True, slots=True)
class _Bits:
    """Some versions of nvme-cli print each bit in addition to the number."""

    value: Count


@dataclass(frozen=True, slots=True)
class _Log:
    critical_warning: Count | _Bits
    avail_spare: Count
    spare_thresh: Count
    percent_used: Count
    media_errors: Count


@dataclass(frozen=True, slots=True)
class _LoggedError:
    """An entry of log page 01h. nvme-cli before 1.13 prints the status field with its lowest bit, the phase tag; later
    versions print that bit as `phase_tag`.
    """

    error_count: Count
    status_field: Count
    phase_tag: Count | None = None
    lba: Count = 0

    @property
    def status(self) -> int:
        """Status code type (bits 8 to 10) and status code."""
        return (self.status_field if self.phase_tag is not None else self.status_field >> 1) & 0x7FF


WRITE_FAULT, UNRECOVERED_READ = 0x280, 0x281
"""NVM Express Base Specification, media and data integrity errors. The others of that type are a wrong checksum of the
host, a failed comparison, a locked range, and a block that was never written.
"""


@dataclass(frozen=True, slots=True)
class _HealthDrive:
    name: str
    serial: str
    model: str
    code: int
    output: str
    log: dict[str, Any] | None
    errors: tuple[_LoggedError, ...] | None = None
    boot: bool = False


@dataclass(frozen=True, slots=True)
class _HealthDocument:
    drives: tuple[_HealthDrive, ...]


def parse_nvme_health(text: str) -> tuple[NvmeDrive, ...]:
    """Return all NVMe drives of the node. Raises `ParseError` for another document, or a log without a field."""
    document = read_document(_HealthDocument, text, _HEALTH)
    return tuple(
        NvmeDrive(drive.name, drive.serial, drive.model, _health(drive), drive.output, drive.boot)
        for drive in document.drives
    )


def _health(drive: _HealthDrive) -> DriveHealth | None:
    if drive.log is None:
        return None
    log = read_value(_Log, drive.log, f"{_HEALTH} {drive.name}")
    bits = log.critical_warning
    return DriveHealth(
        _warnings(bits.value if isinstance(bits, _Bits) else bits),
        log.percent_used,
        log.avail_spare,
        log.spare_thresh,
        log.media_errors,
        _lost_blocks(drive.errors),
    )


def _lost_blocks(errors: tuple[_LoggedError, ...] | None) -> tuple[int, ...] | None:
    """Return the addresses, each once. Entries with the count 0 are empty."""
    if errors is None:
        return None
    lost = (error.lba for error in errors if error.error_count and error.status in (WRITE_FAULT, UNRECOVERED_READ))
    return tuple(dict.fromkeys(lost))


def _warnings(bits: int) -> tuple[str, ...]:
    named = tuple(text for bit, text in enumerate(WARNINGS) if bits >> bit & 1)
    unnamed = bits >> len(WARNINGS)
    return (*named, f"it reports an unknown warning ({bits:#04x})") if unnamed else named


_READ = "nvme-read"
NOT_INSTALLED = 127
_NS = 1e-6
"""Milliseconds in a nanosecond."""


@dataclass(frozen=True, slots=True)
class DriveRead:
    """The read test of one drive.

    output   fio's error output; empty where there is none
    code     fio's exit code
    error    errno of a failed read; 0 for none, None where fio printed no figures
    iops     reads per second; None where fio printed no figures
    p99_ms   99th percentile of the completion latency in milliseconds; None where nothing was read
    seconds  run time without the ramp
    """

    name: str
    serial: str
    model: str
    output: str
    code: int
    error: int | None
    iops: float | None
    p99_ms: float | None
    seconds: float


@dataclass(frozen=True, slots=True)
class _Percentiles:
    percentile: Mapping[str, Count] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class _Direction:
    total_ios: Count
    iops: Figure
    runtime: Count
    clat_ns: _Percentiles


@dataclass(frozen=True, slots=True)
class _Job:
    error: Count
    read: _Direction
    write: _Direction
    trim: _Direction


@dataclass(frozen=True, slots=True)
class _Fio:
    jobs: Annotated[tuple[_Job, ...], Within(min_length=1, max_length=1)]


@dataclass(frozen=True, slots=True)
class _ReadDrive:
    name: Text
    serial: str
    model: str
    code: int
    output: str
    fio: _Fio | None


@dataclass(frozen=True, slots=True)
class _ReadDocument:
    drives: tuple[_ReadDrive, ...]


def parse_nvme_read(text: str) -> tuple[DriveRead, ...]:
    """Return every drive that was read. Raises `ParseError` for another document, or where fio did not only read."""
    document = read_document(_ReadDocument, text, _READ)
    return tuple(_drive(drive) for drive in document.drives)


def _drive(drive: _ReadDrive) -> DriveRead:
    if drive.fio is None:
        return DriveRead(drive.name, drive.serial, drive.model, drive.output, drive.code, None, None, None, 0.0)
    job = drive.fio.jobs[0]
    if job.write.total_ios or job.trim.total_ios:
        raise ParseError("fio wrote or trimmed", where=f"{_READ} {drive.name}")
    slowest = job.read.clat_ns.percentile.get("99.000000")
    return DriveRead(
        name=drive.name,
        serial=drive.serial,
        model=drive.model,
        output=drive.output,
        code=drive.code,
        error=job.error,
        iops=job.read.iops,
        p99_ms=None if slowest is None or not job.read.total_ios else slowest * _NS,
        seconds=job.read.runtime / 1000,
    )
