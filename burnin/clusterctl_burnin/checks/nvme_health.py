"""nvme_health: no NVMe drive warns of itself, is worn, has run out of spare blocks, or has lost data.

A drive's error log (nvme error-log) that names blocks which could not be read or written fails the drive. The count of
such errors over its whole life, without an entry of the log, is a warning. The drive that the system booted from is no
data drive of the SKU. SATA and SAS drives: drive_smart.
"""

from __future__ import annotations

from collections.abc import Iterator

from clusterctl.fleet.finding import Finding, Verdict, not_applicable, passed
from clusterctl.fleet.finding_code import Code
from clusterctl.fleet.quantity import Quantity
from clusterctl.formats.host.nvme import TOO_HOT, DriveHealth, NvmeDrive, parse_nvme_health
from clusterctl_burnin.check import Area, Check, Expected, inconclusive
from clusterctl_burnin.limits.limit import Limit, LimitKey, Limits
from clusterctl_burnin.probe import Probe, Readings, UnmeasuredError
from clusterctl_burnin.probes.nvidia_smi import missing

NVME_USED_MAX = LimitKey(
    "nvme_used_max",
    "%",
    default=80,
    source="own choice; at 100 a drive has had the writing that its maker warrants (NVM Express Base Specification)",
)

NVME_LOST_BLOCKS_MAX = LimitKey(
    "nvme_lost_blocks_max",
    "blocks",
    default=0,
    source="NVM Express Base Specification, status 2h/80h and 2h/81h: each entry is data that is lost",
)

HEALTH = Probe("nvme_health", ("nvme-health", "15"), timeout=25.0)
_NAME = "nvme_health"


def _judge(readings: Readings, expected: Expected) -> Iterator[Finding]:
    drives = parse_nvme_health(readings.text(HEALTH))
    if not drives:
        yield _none(expected)
        return
    bad = [finding for drive in drives for finding in _bad(drive, expected.limits)]
    data = sum(not drive.boot for drive in drives)
    bad += missing(_NAME, data, expected.sku.data_drive_count, "NVMe drives")
    yield from bad
    if not bad:
        worst = max(drive.health.used for drive in drives if drive.health)
        limit = expected.limits[NVME_USED_MAX]
        cause = f"{len(drives)} NVMe drives are healthy"
        yield passed(_NAME, cause, measured=limit.quantity(worst), expected=limit.at_most)


def _none(expected: Expected) -> Finding:
    if expected.sku.data_drive_count == 0:
        return not_applicable(_NAME, "the SKU asks for no data drive, and there is no NVMe drive")
    cause = f"no NVMe drive answers; the SKU asks for {expected.sku.data_drive_count} data drives"
    remedy = "compare lsblk with the BMC's list of drives; take nvme_health out of the suite if none is NVMe"
    return inconclusive(_NAME, UnmeasuredError(cause, remedy=remedy))


def _bad(drive: NvmeDrive, limits: Limits) -> Iterator[Finding]:
    subject = f"{drive.name} ({drive.model})"
    if drive.health is None:
        remedy = "run nvme smart-log on the drive (package nvme-cli); if it does not answer, reseat it, then replace it"
        yield inconclusive(
            _NAME, UnmeasuredError(f"{drive.name}: {drive.output}", remedy=remedy), subject, drive.serial
        )
        return
    limit = limits[NVME_USED_MAX]
    problems = tuple(_problems(drive.health, limit))
    if problems:
        cause, allowed = ", ".join(problems), f"used at most {limit} %"
        remedy = _COOL if problems == (TOO_HOT,) else _replace(drive)
        yield Finding(
            check=_NAME,
            verdict=Verdict.FAIL,
            code=Code.DRIVE_TOO_HOT if problems == (TOO_HOT,) else Code.DRIVE_WORN,
            subject=subject,
            cause=cause,
            measured=_spare_and_use(drive.health),
            expected=allowed,
            remedy=remedy,
            serial=drive.serial,
        )
    elif len(drive.health.lost_blocks or ()) > limits[NVME_LOST_BLOCKS_MAX].value:
        yield _lost(drive, drive.health.lost_blocks or (), limits[NVME_LOST_BLOCKS_MAX])
    elif drive.health.media_errors:
        count = str(drive.health.media_errors)
        cause = f"the drive failed {count} times in its life to read back what was written"
        remedy = "write and read the drive once in full (fio) and check again; replace it if the number grows"
        yield Finding(
            check=_NAME,
            verdict=Verdict.WARN,
            code=Code.DRIVE_MEDIA_ERRORS,
            subject=subject,
            cause=cause,
            measured=Quantity(drive.health.media_errors, "errors"),
            remedy=remedy,
            serial=drive.serial,
        )


def _lost(drive: NvmeDrive, blocks: tuple[int, ...], limit: Limit) -> Finding:
    shown = ", ".join(map(str, blocks[:3])) + (" …" if len(blocks) > 3 else "")
    return Finding(
        check=_NAME,
        verdict=Verdict.FAIL,
        code=Code.DRIVE_FAILING,
        subject=f"{drive.name} ({drive.model})",
        cause=f"the drive's error log names blocks that it could not read or write (LBA {shown})",
        measured=limit.quantity(len(blocks)),
        expected=limit.at_most,
        remedy=_replace(drive),
        serial=drive.serial,
    )


_COOL = (
    "check that the fans turn and that the neighbouring bays are closed, let the drive cool, then run the burn-in again"
)


def _replace(drive: NvmeDrive) -> str:
    return f"replace the drive with serial {drive.serial} ({drive.model})"


def _problems(health: DriveHealth, limit: Limit) -> Iterator[str]:
    yield from health.warnings
    if health.spare < health.spare_threshold and not health.warnings:
        yield "the drive has fewer spare blocks than its threshold"
    if health.used > limit.value:
        yield "the drive has taken most of the writing that its maker warrants"


def _spare_and_use(health: DriveHealth) -> str:
    return f"spare {health.spare} % (threshold {health.spare_threshold} %), used {health.used} %"


CHECK = Check(_NAME, (HEALTH,), _judge, area=Area.STORAGE, limits=(NVME_USED_MAX, NVME_LOST_BLOCKS_MAX))
