"""The drives that a BMC lists, against the SKU: which one gets the OS, how many hold data, and how well they are."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from clusterctl.fleet.errors import EdgeError, UsageError
from clusterctl.fleet.finding import Finding, Verdict, not_applicable, passed
from clusterctl.fleet.finding_code import Code
from clusterctl.fleet.hardware.disk_contract import alike, same_identity, same_name, which_rule
from clusterctl.fleet.hardware.part_health import ASK_AGAIN, contains, health_of_all, judged, label, unmeasured
from clusterctl.fleet.hardware.sku import RootDisk, Sku
from clusterctl.fleet.natural_order import natural_key
from clusterctl.fleet.node import Drive, Inventory
from clusterctl.fleet.quantity import Quantity, exactly

_UNLISTED = (
    "if no BMC of this SKU lists the boot drive, write root_disk: {chosen_by: host, …} into the SKU file: then the "
    "machine's own kernel names it"
)


_HIDDEN = "the BMC does not give all drives that it lists: one that it hides may fit the root disk rule too"


def _hides(inventory: Inventory, rule: RootDisk) -> bool:
    """Return whether a drive that could not be read may be the root disk. A serial names one drive only."""
    return not inventory.complete("drives") and not (rule.serial or rule.wwn)


def root_disk(inventory: Inventory, rule: RootDisk, known: str = "") -> Drive:
    """Return the one drive that the rule names; of several alike, `known` (a serial) where it is one of them.

    Raise `EdgeError` where there is none, `UsageError` where the rule matches several that are not one as good as
    the other, may match one that could not be read, or leaves the choice to the host.
    """
    if rule.chosen_by != "bmc":
        raise UsageError(f"the root disk is chosen by the {rule.chosen_by}", where="root_disk")
    if not inventory.drives:
        raise EdgeError("the BMC reports no drive", where="root_disk", remedy=f"{ASK_AGAIN}; {_UNLISTED}")
    if _hides(inventory, rule):
        raise EdgeError(_HIDDEN, where="root_disk", remedy=ASK_AGAIN)
    fitting = [drive for drive in inventory.drives if fits(drive, rule)]
    if not fitting:
        remedy = (
            "reseat or replace the boot drive; if it is of another kind by intent, correct the SKU's root_disk rule"
        )
        raise EdgeError(
            f"no drive fits the root disk rule ({rule}); there are: {describe(inventory.drives)}",
            where="root_disk",
            remedy=f"{remedy}; {_UNLISTED}",
        )
    if len(fitting) < rule.one_of:
        raise EdgeError(
            f"{len(fitting)} of {rule.one_of} boot drives: {describe(fitting)}",
            where="root_disk",
            remedy="reseat the boot drive whose bay is not listed; if it stays absent, replace it",
        )
    if len(fitting) == rule.one_of and alike(fitting):
        return _preferred(fitting, known)
    raise UsageError(
        f"{len(fitting)} drives fit the root disk rule: {describe(fitting)}",
        where="root_disk",
        remedy=which_rule(fitting, ("model", "bay", "controller", "protocol")),
    )


def _preferred(drives: Iterable[Drive], known: str) -> Drive:
    """Return the drive with the serial `known`, else that of the lowest slot."""
    return min(drives, key=lambda drive: (not same_identity(drive.serial or "", known), natural_key(drive.slot)))


def boot_drives(inventory: Inventory, rule: RootDisk) -> list[Drive]:
    """Return the drives that the BMC lists and that hold no data: those of the rule, the members of a mirror among
    them where the host names the mirror.
    """
    drives = inventory.drives or ()
    if rule.chosen_by == "bmc" or not (rule.bay or rule.controller):
        return [drive for drive in drives if fits(drive, rule)] if _selects(rule) else []
    place = RootDisk(bay=rule.bay, controller=rule.controller)
    return [drive for drive in drives if fits(drive, place)]


def _selects(rule: RootDisk) -> bool:
    """Return whether the rule names drives by any of their properties."""
    return rule.chosen_by == "bmc" or rule != RootDisk(chosen_by=rule.chosen_by, one_of=rule.one_of)


def judge_drive_count(inventory: Inventory, sku: Sku) -> Finding:
    """Return the finding about the number of data drives: all but the root disk."""
    rule = sku.root_disk
    if not inventory.drives and rule.chosen_by != "bmc":
        cause = f"the BMC reports no drive; SKU {sku.name} leaves drives to the host: the load nvme_read counts them"
        return not_applicable("drive_count", cause)
    if inventory.drives is None:
        return unmeasured("drive_count", "the BMC does not list its drives")
    found = len(inventory.drives) - _boot_drive_count(inventory, rule)
    finding = Finding(
        check="drive_count",
        verdict=Verdict.FAIL,
        code=Code.DRIVE_COUNT,
        measured=Quantity(found, "drives"),
        expected=exactly(sku.data_drive_count, "drives"),
        cause=f"{found} of {sku.data_drive_count} data drives; there are: {describe(inventory.drives)}",
        remedy="reseat the drive whose bay is not listed; if it stays absent, replace it",
    )
    if found != sku.data_drive_count and not inventory.complete("drives"):
        return unmeasured("drive_count", f"the BMC gives {found} data drives, and some that it lists could not be read")
    return judged(finding, good=found == sku.data_drive_count)


def _boot_drive_count(inventory: Inventory, rule: RootDisk) -> int:
    """Return the number of drives without data. A dead drive that does not report its size may be a boot drive."""
    roots = boot_drives(inventory, rule)
    if rule.chosen_by != "bmc":
        return len(roots)
    dead = any(drive.healthy is False and not drive.size_bytes for drive in inventory.drives or ())
    return min(len(roots) + dead, rule.one_of)


def judge_drives(inventory: Inventory) -> tuple[Finding, ...]:
    """Return a finding for each drive that the BMC reports as failing, else one for all drives with a reported health.

    No finding where it reports no drive's health: `drive_count` judges whether drives are present.
    """
    drives = inventory.drives or ()
    if failed := [drive for drive in drives if drive.healthy is False]:
        return tuple(_failed(drive) for drive in failed)
    return health_of_all("drives", drives, whole=inventory.complete("drives"), unit="drives")


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
    """Return whether exactly one drive gets the OS. An ambiguous rule holds the node: the machine may be healthy."""
    rule = sku.root_disk
    if rule.chosen_by != "bmc":
        how = f"of SKU {sku.name} the {rule.chosen_by} names the root disk; the first boot proves it (root_disk_booted)"
        return not_applicable("root_disk", how)
    if inventory.drives and _hides(inventory, rule):
        return unmeasured("root_disk", _HIDDEN)
    try:
        drive = root_disk(inventory, rule)
    except (EdgeError, UsageError) as error:
        return _unclear_root_disk(error, inventory.drives or (), rule)
    if not drive.serial:
        return unmeasured("root_disk", f"the BMC does not report the serial of the root disk in slot {drive.slot}")
    cause = f"root disk is {describe([drive])}"
    one_of = rule.one_of
    return passed("root_disk", cause, measured=Quantity(one_of), expected=exactly(one_of), serial=drive.serial)


def _unclear_root_disk(error: EdgeError | UsageError, drives: Sequence[Drive], rule: RootDisk) -> Finding:
    """Return the finding where the rule does not give one drive: a failure only where no listed drive fits."""
    ambiguous = isinstance(error, UsageError)
    return Finding(
        check="root_disk",
        verdict=Verdict.INCONCLUSIVE if ambiguous or not drives else Verdict.FAIL,
        code=Code.ROOT_DISK_UNCLEAR if drives else Code.NOT_REPORTED,
        cause=error.message,
        measured=Quantity(sum(fits(drive, rule) for drive in drives)),
        expected=exactly(rule.one_of),
        remedy=error.remedy,
        deterministic=bool(drives),
    )


def fits(drive: Drive, rule: RootDisk) -> bool:
    """Return whether the drive has all properties that the rule names."""
    return all(
        (
            not rule.serial or same_identity(rule.serial, drive.serial or ""),
            not rule.wwn or same_name(rule.wwn, drive.wwn),
            _named(drive.slot, rule.bay),
            contains(drive.controller, rule.controller),
            contains(drive.model, rule.model),
            not rule.protocol or same_identity(drive.protocol, rule.protocol),
            rule.min_bytes <= drive.size_bytes <= rule.max_bytes,
        )
    )


def _named(slot: str, bay: str) -> bool:
    """Return whether the slot is the bay, or has it as a part of its name: `Bay.1` is no part of `Bay.10`."""
    return not bay or re.search(rf"(?<![A-Za-z0-9]){re.escape(bay)}(?![A-Za-z0-9])", slot, re.IGNORECASE) is not None


def describe(drives: Iterable[Drive]) -> str:
    """Return slot, serial, model, size, and where it is known the controller of each drive."""
    return ", ".join(_description(drive) for drive in drives) or "none"


def _description(drive: Drive) -> str:
    controller = f" at {drive.controller}" if drive.controller else ""
    return f"{label(drive)} {drive.model} {drive.size_bytes / 1e9:.0f} GB{controller}"
