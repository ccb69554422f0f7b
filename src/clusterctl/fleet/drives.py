"""A machine's drives against its SKU: which one is the root disk, and whether all others are there."""

from __future__ import annotations

from collections.abc import Iterable

from clusterctl.fleet.disk_contract import same_name
from clusterctl.fleet.errors import EdgeError, UsageError
from clusterctl.fleet.finding import Finding, Verdict, passed
from clusterctl.fleet.finding_code import Code
from clusterctl.fleet.judging import ASK_AGAIN, contains, judged, label, unmeasured
from clusterctl.fleet.node import Drive, Inventory
from clusterctl.fleet.quantity import Quantity, exactly
from clusterctl.fleet.sku import RootDisk, Sku


def root_disk(inventory: Inventory, rule: RootDisk) -> Drive:
    """The one drive that the rule names. `EdgeError` where there is none, `UsageError` where the rule fits several."""
    if inventory.drives is None:
        raise EdgeError("the BMC does not tell the machine's drives", where="root_disk", remedy=ASK_AGAIN)
    fitting = [drive for drive in inventory.drives if fits(drive, rule)]
    if len(fitting) == 1:
        return fitting[0]
    if fitting:
        raise UsageError(
            f"{len(fitting)} drives fit the root disk rule: {describe(fitting)}",
            where="root_disk",
            remedy="make the SKU's root_disk rule so narrow that it fits one drive (by model, size, serial or WWN)",
        )
    raise EdgeError(
        f"no drive fits the root disk rule; there are: {describe(inventory.drives)}",
        where="root_disk",
        remedy="reseat or replace the boot drive; if it is of another kind by intent, correct the SKU's root_disk rule",
    )


def judge_drive_count(inventory: Inventory, sku: Sku) -> Finding:
    """Data drives: all but the root disk, which may be a dead one that does not tell what it is any more."""
    if inventory.drives is None:
        return unmeasured("drive_count", "the BMC does not tell its drives")
    roots = [drive for drive in inventory.drives if fits(drive, sku.root_disk)]
    nameless = [drive for drive in inventory.drives if drive.healthy is False and not drive.size_bytes]
    found = len(inventory.drives) - (1 if roots or nameless else 0)
    finding = Finding(
        check="drive_count",
        verdict=Verdict.FAIL,
        code=Code.DRIVE_COUNT,
        measured=Quantity(found, "drives"),
        expected=exactly(sku.data_drive_count, "drives"),
        cause=f"{found} of {sku.data_drive_count} data drives; there are: {describe(inventory.drives)}",
        remedy="reseat the drive whose bay is not listed; if it stays absent, replace it",
    )
    return judged(finding, good=found == sku.data_drive_count)


def judge_drives(inventory: Inventory) -> tuple[Finding, ...]:
    """How well the drives are: a finding for each that the BMC calls failing, else one for all that it tells about.

    No finding where it tells of none: that they are there at all is for `drive_count` to say.
    """
    told = [drive for drive in inventory.drives or () if drive.healthy is not None]
    failed = [drive for drive in told if not drive.healthy]
    if failed or not told:
        return tuple(_failed(drive) for drive in failed)
    return (passed("drives", "all that tell their health are well", measured=Quantity(len(told), "drives")),)


def _failed(drive: Drive) -> Finding:
    return Finding(
        check="drives",
        verdict=Verdict.FAIL,
        code=Code.PART_UNHEALTHY,
        subject=drive.slot,
        cause=f"the BMC reports as failing: {describe([drive])}",
        measured="failing",
        expected="well",
        remedy=f"replace the drive in slot {label(drive)}",
        serial=drive.serial or "",
    )


def judge_root_disk(inventory: Inventory, sku: Sku) -> Finding:
    if inventory.drives is None:
        return unmeasured("root_disk", "the BMC does not tell its drives")
    try:
        drive = root_disk(inventory, sku.root_disk)
    except (EdgeError, UsageError) as error:
        count = sum(fits(drive, sku.root_disk) for drive in inventory.drives)
        return Finding(
            check="root_disk",
            verdict=Verdict.FAIL,
            code=Code.ROOT_DISK_UNCLEAR,
            cause=error.message,
            measured=Quantity(count),
            expected=exactly(1),
            remedy=error.remedy,
        )
    if not drive.serial:
        return unmeasured("root_disk", f"the BMC does not tell the serial of the root disk in slot {drive.slot}")
    return passed(
        "root_disk", f"root disk is {describe([drive])}", measured=Quantity(1), expected=exactly(1), serial=drive.serial
    )


def fits(drive: Drive, rule: RootDisk) -> bool:
    serial = not rule.serial or rule.serial.casefold() == (drive.serial or "").casefold()
    wwn = not rule.wwn or same_name(rule.wwn, drive.wwn)
    return serial and wwn and contains(drive.model, rule.model) and rule.min_bytes <= drive.size_bytes <= rule.max_bytes


def describe(drives: Iterable[Drive]) -> str:
    return ", ".join(f"{label(d)} {d.model} {d.size_bytes / 1e9:.0f} GB" for d in drives) or "none"
