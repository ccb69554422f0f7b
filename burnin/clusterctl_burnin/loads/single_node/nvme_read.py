"""nvme_read: every NVMe data drive answers random reads of 4 KiB as fast as its kind does. It only reads.

fio reads all data drives of the node at once, past the page cache (https://fio.readthedocs.io/en/latest/fio_doc.html).
A drive answers for blocks that were never written, or were trimmed, without its flash: the figure of a fresh drive
measures controller, link and kernel.
"""

from __future__ import annotations

import errno
from collections.abc import Iterator

from clusterctl.fleet.finding import Finding, Verdict, not_applicable, passed
from clusterctl.fleet.finding_code import Code
from clusterctl.fleet.quantity import Quantity
from clusterctl.formats.host.nvme import NOT_INSTALLED, DriveRead, parse_nvme_read
from clusterctl_burnin.check import Area, Expected, inconclusive
from clusterctl_burnin.fleet_stats import Bad, Metric, Sample
from clusterctl_burnin.limits.limit import Limit, LimitKey, Limits
from clusterctl_burnin.loads.node_load import NodeLoad
from clusterctl_burnin.probe import Probe, Readings, UnmeasuredError

NVME_READ_IOPS_MIN = LimitKey("nvme_read_iops_min", "IOPS")

_NAME = "nvme_read"
_MARGIN_S = 30.0
"""For fio's start and end, of which node/programs/nvme_read.py waits for 15 s."""
_IO_ERRORS = frozenset({errno.EIO, errno.EREMOTEIO, errno.ENODATA, errno.EILSEQ, errno.ETIMEDOUT})
"""What Linux reports of a read that the drive failed (block/blk-core.c of the kernel, `blk_errors`)."""
IOPS = Metric(
    "nvme_read_iops",
    "IOPS",
    Bad.LOW,
    0.2,
    0.0,
    "compare the drive's model, firmware, temperature and PCIe link with the others', then reseat it, then replace it",
)
_MISSING = "install fio (the role burnin_tools does), then run the burn-in again"
_AGAIN = "read fio's output in the evidence, run nvme smart-log on the drive, then run the burn-in again"


def _probes(limits: Limits, seconds: int | None) -> tuple[Probe, ...]:
    how = limits.methods.nvme_read
    length = how.seconds if seconds is None else seconds
    argv = ("nvme-read", *map(str, (length, how.ramp_seconds, how.jobs, how.depth)))
    return (Probe(_NAME, argv, timeout=length + how.ramp_seconds + _MARGIN_S),)


_READ = Probe(_NAME, ("nvme-read",))


def _judge(readings: Readings, expected: Expected) -> Iterator[Finding]:
    drives = parse_nvme_read(readings.text(_READ))
    if drives and all(drive.code == NOT_INSTALLED for drive in drives):
        raise UnmeasuredError(f"fio could not be started: {drives[0].output}", remedy=_MISSING)
    limit = expected.limits[NVME_READ_IOPS_MIN]
    found = [finding for drive in drives if (finding := _of_drive(drive, limit)) is not None]
    yield from found
    wanted = expected.sku.data_drive_count
    if len(drives) < wanted:
        yield _too_few(len(drives), wanted)
    elif not drives:
        yield not_applicable(_NAME, "the SKU asks for no data drive, and no NVMe drive is one")
    elif not found:
        yield _passed(drives, limit)


def _of_drive(drive: DriveRead, limit: Limit) -> Finding | None:
    """Return the finding; None where it reads fast enough."""
    subject = f"{drive.name} ({drive.model})"
    if drive.error in _IO_ERRORS:
        reason = next((line for line in drive.output.splitlines() if "error" in line), f"errno {drive.error}")
        return _failed(drive, subject, (Code.DRIVE_READ_FAILED, f"a read failed: {reason}", None), limit)
    if drive.code != 0 or drive.error or not drive.iops:
        reason = drive.output or f"fio ended with exit code {drive.code} and read nothing"
        error = UnmeasuredError(f"{drive.name} could not be read from: {reason}", remedy=_AGAIN)
        return inconclusive(_NAME, error, subject, drive.serial)
    if drive.iops < limit.value:
        slow = "" if drive.p99_ms is None else f"; one read of a hundred takes {drive.p99_ms:.3g} ms or more"
        diagnosis = Code.DRIVE_SLOW, f"the drive reads too slowly{slow}", limit.quantity(drive.iops)
        return _failed(drive, subject, diagnosis, limit)
    return None


def _failed(drive: DriveRead, subject: str, diagnosis: tuple[Code, str, Quantity | None], limit: Limit) -> Finding:
    """Return the failure. A second run may find the drive cool again: the gate asks for one. `diagnosis`: its data."""
    code, cause, measured = diagnosis
    remedy = (
        f"check its temperature and PCIe link, reseat the drive with serial {drive.serial} ({drive.model}), run the "
    )
    return Finding(
        check=_NAME,
        verdict=Verdict.FAIL,
        code=code,
        subject=subject,
        cause=cause,
        measured=measured,
        expected=limit.at_least,
        remedy=f"{remedy}burn-in again; replace it if that does not help",
        serial=drive.serial,
        deterministic=False,
    )


def _too_few(count: int, wanted: int) -> Finding:
    cause = f"{count} NVMe data drives could be read from; the SKU asks for {wanted} data drives"
    remedy = "compare lsblk with the BMC's list of drives; take nvme_read out of the suite if none is NVMe"
    return inconclusive(_NAME, UnmeasuredError(cause, remedy=remedy))


def _passed(drives: tuple[DriveRead, ...], limit: Limit) -> Finding:
    slowest = min(drive.iops or 0.0 for drive in drives)
    cause = f"{len(drives)} NVMe data drives read fast enough, all at once; the slowest is shown"
    return passed(_NAME, cause, measured=limit.quantity(slowest), expected=limit.at_least)


def _samples(node: str, population: str, readings: Readings) -> Iterator[Sample]:
    for drive in parse_nvme_read(readings.text(_READ)):
        if drive.code == 0 and drive.iops:
            yield Sample(node, IOPS, drive.iops, population, f"{drive.name} ({drive.model})", drive.serial)


LOAD = NodeLoad(
    _NAME, _probes, _judge, (IOPS,), _samples, (NVME_READ_IOPS_MIN,), needs=frozenset(), about=frozenset({Area.STORAGE})
)
