"""drive_smart: no SATA or SAS drive fails by its own verdict, holds data that it cannot read, or is worn.

By smartctl, also for drives behind RAID controllers that it can look through. Counters of a drive's whole life are
warnings: a new cable or a replaced sector does not reset them. A RAID volume without SMART is a warning, too: the BMC
reports the health of the drives behind it. NVMe drives: nvme_health.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from clusterctl.fleet.finding import Finding, Verdict, not_applicable, passed
from clusterctl.fleet.finding_code import Code
from clusterctl.fleet.quantity import Bound, Quantity
from clusterctl.formats.host.smart import DriveSmart, SmartDrive, parse_drive_smart
from clusterctl_burnin.check import Area, Check, Expected, inconclusive
from clusterctl_burnin.limits.limit import LimitKey, Limits
from clusterctl_burnin.probe import Probe, Readings, UnmeasuredError

DRIVE_PENDING_MAX = LimitKey(
    "drive_pending_max", "sectors", default=0, source="attributes 197 and 198: each is a sector whose data is lost"
)
DRIVE_UNCORRECTED_MAX = LimitKey(
    "drive_uncorrected_max", "errors", default=0, source="own choice; each is data that the drive could not return once"
)
DRIVE_REALLOCATED_MAX = LimitKey(
    "drive_reallocated_max", "sectors", default=10, source="own choice; drives replace a few sectors in their life"
)
DRIVE_CABLE_ERRORS_MAX = LimitKey(
    "drive_cable_errors_max",
    "errors",
    default=100,
    source="own choice; public outputs show 0 to 24 on healthy drives, and hundreds to millions behind a bad cable",
)
DRIVE_USED_MAX = LimitKey(
    "drive_used_max",
    "%",
    default=80,
    source="own choice; at 100 a drive has had the writing that its maker warrants (ACS-4, Device Statistics)",
)
SMART = Probe("drive_smart", ("drive-smart", "30"), timeout=45.0, max_bytes=4 * 1024 * 1024)
_NAME = "drive_smart"
_LIMITS = (DRIVE_PENDING_MAX, DRIVE_UNCORRECTED_MAX, DRIVE_REALLOCATED_MAX, DRIVE_CABLE_ERRORS_MAX, DRIVE_USED_MAX)


def _judge(readings: Readings, expected: Expected) -> Iterator[Finding]:
    drives = parse_drive_smart(readings.text(SMART))
    if not drives:
        yield not_applicable(_NAME, "the node has no SATA or SAS drive")
        return
    bad = [finding for drive in drives for finding in _of(drive, expected.limits)]
    yield from bad
    if not bad:
        yield passed(_NAME, f"{len(drives)} SATA and SAS drives are healthy", measured=Quantity(len(drives), "drives"))


def _of(drive: SmartDrive, limits: Limits) -> Iterator[Finding]:
    if drive.smart is not None:
        yield from _by_smart(drive, drive.smart, limits)
    elif drive.capable:
        remedy = "run smartctl -x on the drive (package smartmontools, role base); if it does not answer, replace it"
        error = UnmeasuredError(f"{drive.name}: {drive.output}", remedy=remedy)
        yield inconclusive(_NAME, error, _subject(drive), drive.serial)
    else:
        cause = "the device has no SMART: a RAID volume, or a virtual disk"
        remedy = "read the drives behind it by the tool of their controller, or in the BMC"
        yield _finding(drive, Verdict.WARN, Code.DRIVE_NO_SMART, cause, remedy)


def _by_smart(drive: SmartDrive, smart: DriveSmart, limits: Limits) -> Iterator[Finding]:
    replace_it = f"replace the drive with serial {drive.serial} ({drive.model})"
    if not smart.passed:
        cause = "the drive's own verdict is that it fails"
        yield _finding(drive, Verdict.FAIL, Code.DRIVE_FAILING, cause, replace_it)
    if above := _above(smart.pending, DRIVE_PENDING_MAX, limits):
        cause = "the drive holds sectors that it cannot read"
        failing = _finding(drive, Verdict.FAIL, Code.DRIVE_FAILING, cause, replace_it, above)
        yield replace(failing, deterministic=False)  # firmware of some drives counts one for a moment
    if above := _above(smart.used, DRIVE_USED_MAX, limits):
        cause = "the drive has taken most of the writing that its maker warrants"
        yield _finding(drive, Verdict.FAIL, Code.DRIVE_WORN, cause, replace_it, above)
    grows = "read the drive once in full and check again; replace it if the number grows"
    if above := _above(smart.uncorrected, DRIVE_UNCORRECTED_MAX, limits):
        cause = "the drive had errors in its life that it could not correct"
        yield _finding(drive, Verdict.WARN, Code.DRIVE_MEDIA_ERRORS, cause, grows, above)
    if above := _above(smart.reallocated, DRIVE_REALLOCATED_MAX, limits):
        cause = "the drive has replaced many sectors in its life"
        yield _finding(drive, Verdict.WARN, Code.DRIVE_REALLOCATED, cause, grows, above)
    if above := _above(smart.cable_errors, DRIVE_CABLE_ERRORS_MAX, limits):
        cause = "transfers to the drive arrived with wrong checksums"
        remedy = "reseat the drive and its cable; replace cable or backplane if the number grows"
        yield _finding(drive, Verdict.WARN, Code.DRIVE_CABLE_ERRORS, cause, remedy, above)
    if smart.test_failed:
        cause = "the drive's log of self-tests has an error"
        remedy = "start a long self-test (smartctl -t long) and replace the drive if it fails"
        yield _finding(drive, Verdict.WARN, Code.DRIVE_MEDIA_ERRORS, cause, remedy)


def _above(value: int | None, key: LimitKey, limits: Limits) -> tuple[Quantity, Bound] | None:
    """Return value and limit where the drive keeps this count and it exceeds the limit."""
    limit = limits[key]
    return None if value is None or value <= limit.value else (limit.quantity(value), limit.at_most)


def _subject(drive: SmartDrive) -> str:
    return f"{drive.name} ({drive.model})" if drive.model else drive.name


def _finding(
    drive: SmartDrive,
    verdict: Verdict,
    code: Code,
    cause: str,
    remedy: str,
    above: tuple[Quantity, Bound] | None = None,
) -> Finding:
    measured, allowed = above or (None, None)
    return Finding(
        check=_NAME,
        verdict=verdict,
        code=code,
        subject=_subject(drive),
        cause=cause,
        measured=measured,
        expected=allowed,
        remedy=remedy,
        serial=drive.serial,
    )


CHECK = Check(_NAME, (SMART,), _judge, area=Area.STORAGE, limits=_LIMITS)
