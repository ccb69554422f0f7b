"""SATA and SAS drives: the JSON document of the built-in `drive-smart`, which carries `smartctl --json --xall`.

Bits of the exit status are those of smartctl(8). Attribute numbers are those that makers have in common
(https://www.smartmontools.org/wiki/Attributes); a maker may leave any of them out. Endurance is that of ATA Device
Statistics, page 07h, or of the SCSI page Solid State Media (0x11).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from clusterctl.formats.documents import Count, Text, read_document, read_value

_WHERE = "drive-smart"
_NOT_OPENED = 0b11
SELF_TEST_FAILED = 0b1000_0000
REALLOCATED, UNCORRECTED, PENDING, OFFLINE, CABLE = 5, 187, 197, 198, 199
_SOLID_STATE_PAGE, _USED_OFFSET = 7, 8


@dataclass(frozen=True, slots=True)
class DriveSmart:
    """What a drive reports of itself. A count that the drive does not keep is None.

    passed         its own verdict
    pending        sectors that it could not read and has not replaced; with those of its offline scan
    uncorrected    errors of its life that it could not correct
    reallocated    sectors that it replaced in its life, or its grown defect list
    cable_errors   transfers that were repeated for a wrong checksum, in its life
    used           % of the warranted endurance of a solid-state drive
    test_failed    its log of self-tests has an error
    """

    passed: bool
    pending: int | None
    uncorrected: int | None
    reallocated: int | None
    cable_errors: int | None
    used: int | None
    test_failed: bool


@dataclass(frozen=True, slots=True)
class SmartDrive:
    """A drive by its kernel name, `sda`, or by its place behind a controller, `bus/0 megaraid,2`.

    smart    None where it was not read; `output` is the reason
    capable  False where the device reports that it has no SMART: a RAID volume, or a virtual disk
    """

    name: str
    serial: str
    model: str
    smart: DriveSmart | None
    output: str
    capable: bool = True


@dataclass(frozen=True, slots=True)
class _Drive:
    name: Text
    serial: str
    model: str
    code: int
    output: str
    smart: dict[str, Any] | None


@dataclass(frozen=True, slots=True)
class _Document:
    drives: tuple[_Drive, ...]


@dataclass(frozen=True, slots=True)
class _Message:
    string: str = ""


@dataclass(frozen=True, slots=True)
class _Tool:
    exit_status: Count
    messages: tuple[_Message, ...] = ()


@dataclass(frozen=True, slots=True)
class _Support:
    available: bool


@dataclass(frozen=True, slots=True)
class _Status:
    passed: bool


@dataclass(frozen=True, slots=True)
class _Raw:
    value: Count


@dataclass(frozen=True, slots=True)
class _Attribute:
    id: Count
    raw: _Raw


@dataclass(frozen=True, slots=True)
class _Attributes:
    table: tuple[_Attribute, ...] = ()


@dataclass(frozen=True, slots=True)
class _Statistic:
    offset: Count = 0
    value: int | None = None


@dataclass(frozen=True, slots=True)
class _Page:
    number: Count
    table: tuple[_Statistic, ...] = ()


@dataclass(frozen=True, slots=True)
class _Statistics:
    pages: tuple[_Page, ...] = ()


@dataclass(frozen=True, slots=True)
class _Errors:
    total_uncorrected_errors: Count


@dataclass(frozen=True, slots=True)
class _Smart:
    smartctl: _Tool
    model_name: str = ""
    scsi_model_name: str = ""
    serial_number: str = ""
    smart_support: _Support | None = None
    smart_status: _Status | None = None
    ata_smart_attributes: _Attributes = _Attributes()
    ata_device_statistics: _Statistics = _Statistics()
    scsi_grown_defect_list: Count | None = None
    scsi_error_counter_log: Mapping[str, _Errors] = field(default_factory=dict)
    scsi_percentage_used_endurance_indicator: Count | None = None


def parse_drive_smart(text: str) -> tuple[SmartDrive, ...]:
    """Return the node's SATA and SAS drives. Raises `ParseError` for another document or another form of a field."""
    document = read_document(_Document, text, _WHERE)
    hidden = any(" " in drive.name for drive in document.drives)
    return tuple(_drive(drive, is_volume=hidden and " " not in drive.name) for drive in document.drives)


def _drive(drive: _Drive, *, is_volume: bool) -> SmartDrive:
    """Return the drive. `is_volume`: a controller has drives of its own behind it; if smartctl cannot open the device,
    it is a volume of that controller.
    """
    if drive.smart is None:
        return SmartDrive(drive.name, drive.serial, drive.model, None, drive.output)
    read = read_value(_Smart, drive.smart, f"{_WHERE} {drive.name}")
    serial = read.serial_number or drive.serial
    model = read.model_name or read.scsi_model_name or drive.model

    def without_health(reason: str, *, capable: bool = True) -> SmartDrive:
        messages = "; ".join(message.string for message in read.smartctl.messages) or drive.output
        return SmartDrive(drive.name, serial, model, None, messages or reason, capable)

    if read.smartctl.exit_status & _NOT_OPENED:
        return without_health("smartctl could not open the drive", capable=not is_volume)
    if read.smart_status is None:
        return without_health("it reports no health", capable=_is_capable(read))
    smart = _smart(read)
    if smart.passed and {smart.pending, smart.uncorrected, smart.reallocated} == {None}:
        return without_health("it reports no error counters")
    return SmartDrive(drive.name, serial, model, smart, "")


def _is_capable(read: _Smart) -> bool:
    if read.smart_support is None:  # before smartctl 7.3
        return read.smartctl.exit_status != 0
    return read.smart_support.available


def _smart(read: _Smart) -> DriveSmart:
    assert read.smart_status is not None  # noqa: S101 — the caller has looked
    by_id = {attribute.id: attribute.raw.value for attribute in read.ata_smart_attributes.table}
    grown = read.scsi_grown_defect_list
    uncorrected = [errors.total_uncorrected_errors for errors in read.scsi_error_counter_log.values()]
    return DriveSmart(
        passed=read.smart_status.passed,
        pending=_pending(by_id),
        uncorrected=sum(uncorrected) if uncorrected else _low32(by_id.get(UNCORRECTED)),
        reallocated=_low32(by_id.get(REALLOCATED)) if grown is None else grown,
        cable_errors=by_id.get(CABLE),
        used=_used(read),
        test_failed=bool(read.smartctl.exit_status & SELF_TEST_FAILED),
    )


def _pending(by_id: Mapping[int, int]) -> int | None:
    counts = [_low32(by_id[number]) for number in (PENDING, OFFLINE) if number in by_id]
    return max((count for count in counts if count is not None), default=None)


def _low32(raw: int | None) -> int | None:
    """Return the count in a 48-bit raw value: some makers keep another figure in its upper 16 bits."""
    return None if raw is None else raw & 0xFFFF_FFFF


def _used(read: _Smart) -> int | None:
    if read.scsi_percentage_used_endurance_indicator is not None:
        return read.scsi_percentage_used_endurance_indicator
    pages = (page for page in read.ata_device_statistics.pages if page.number == _SOLID_STATE_PAGE)
    return next((one.value for page in pages for one in page.table if one.offset == _USED_OFFSET), None)
