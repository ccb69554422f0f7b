"""The drives that a BMC lists, against the SKU: which one gets the OS, how many hold data, and how well they are."""

from __future__ import annotations

import re
from collections.abc import Iterable

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
        return min(fitting, key=lambda drive: (not same_identity(drive.serial or "", known), natural_key(drive.slot)))
    raise UsageError(
        f"{len(fitting)} drives fit the root disk rule: {describe(fitting)}",
        where="root_disk",
        remedy=which_rule(fitting, ("model", "bay", "controller", "protocol")),
    )


def boot_drives(inventory: Inventory, rule: RootDisk) -> list[Drive]:
    """Return the drives that the BMC lists and that hold no data: those of the rule, the members of a mirror among
    them where the host names the mirror.
    """
    drives = inventory.drives or ()
    if rule.chosen_by == "bmc" or not (rule.bay or rule.controller):
        return [drive for drive in drives if fits(drive, rule)] if _says_which(rule) else []
    place = RootDisk(bay=rule.bay, controller=rule.controller)
    return [drive for drive in drives if fits(drive, place)]


def _says_which(rule: RootDisk) -> bool:
    return rule.chosen_by == "bmc" or rule != RootDisk(chosen_by=rule.chosen_by, one_of=rule.one_of)


def judge_drive_count(inventory: Inventory, sku: Sku) -> Finding:
    """Data drives: all but the root disk, which may be a dead one that does not report what it is any more."""
    rule = sku.root_disk
    if not inventory.drives and rule.chosen_by != "bmc":
        cause = f"the BMC reports no drive; SKU {sku.name} leaves drives to the host: the load nvme_read counts them"
        return not_applicable("drive_count", cause)
    if inventory.drives is None:
        return unmeasured("drive_count", "the BMC does not tell its drives")
    roots = boot_drives(inventory, rule)
    dead = [drive for drive in inventory.drives if drive.healthy is False and not drive.size_bytes]
    few = 1 if rule.chosen_by == "bmc" and dead and len(roots) < rule.one_of else 0
    found = len(inventory.drives) - len(roots[: rule.one_of] if rule.chosen_by == "bmc" else roots) - few
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


def judge_drives(inventory: Inventory) -> tuple[Finding, ...]:
    """How well the drives are: a finding for each that the BMC calls failing, else one for all that it tells about.

    No finding where it tells of none: that they are there at all is for `drive_count` to say.
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
    """Return whether it is certain which drive gets the OS. What a rule leaves open holds the node: the machine may be
    well.
    """
    rule = sku.root_disk
    if rule.chosen_by != "bmc":
        how = f"of SKU {sku.name} the {rule.chosen_by} names the root disk; the first boot proves it (root_disk_booted)"
        return not_applicable("root_disk", how)
    if inventory.drives and _hides(inventory, rule):
        return unmeasured("root_disk", _HIDDEN)
    try:
        drive = root_disk(inventory, rule)
    except (EdgeError, UsageError) as error:
        ambiguous = isinstance(error, UsageError)
        count = sum(fits(drive, rule) for drive in inventory.drives or ())
        return Finding(
            check="root_disk",
            verdict=Verdict.INCONCLUSIVE if ambiguous or not inventory.drives else Verdict.FAIL,
            code=Code.ROOT_DISK_UNCLEAR if inventory.drives else Code.NOT_REPORTED,
            cause=error.message,
            measured=Quantity(count),
            expected=exactly(rule.one_of),
            remedy=error.remedy,
            deterministic=bool(inventory.drives),
        )
    if not drive.serial:
        return unmeasured("root_disk", f"the BMC does not tell the serial of the root disk in slot {drive.slot}")
    cause = f"root disk is {describe([drive])}"
    one_of = rule.one_of
    return passed("root_disk", cause, measured=Quantity(one_of), expected=exactly(one_of), serial=drive.serial)


def fits(drive: Drive, rule: RootDisk) -> bool:
    """Return whether the drive is as the rule asks."""
    serial = not rule.serial or same_identity(rule.serial, drive.serial or "")
    wwn = not rule.wwn or same_name(rule.wwn, drive.wwn)
    place = _named(drive.slot, rule.bay) and contains(drive.controller, rule.controller)
    kind = contains(drive.model, rule.model) and (not rule.protocol or same_identity(drive.protocol, rule.protocol))
    return serial and wwn and place and kind and rule.min_bytes <= drive.size_bytes <= rule.max_bytes


def _named(slot: str, bay: str) -> bool:
    """Return whether the slot is the bay, or has it as a part of its name: `Bay.1` is no part of `Bay.10`."""
    return not bay or re.search(rf"(?<![A-Za-z0-9]){re.escape(bay)}(?![A-Za-z0-9])", slot, re.IGNORECASE) is not None


def describe(drives: Iterable[Drive]) -> str:
    """Return slot, serial, model, size, and where it is known the controller of each drive."""
    return ", ".join(_description(drive) for drive in drives) or "none"


def _description(drive: Drive) -> str:
    controller = f" at {drive.controller}" if drive.controller else ""
    return f"{label(drive)} {drive.model} {drive.size_bytes / 1e9:.0f} GB{controller}"
