"""Which of the drives that a machine itself sees gets the OS: exactly one, or none is touched."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from clusterctl.fleet.errors import EdgeError, RootDiskUnclearError
from clusterctl.fleet.finding import Finding, Verdict, passed
from clusterctl.fleet.finding_code import Code
from clusterctl.fleet.hardware.sku import RootDisk

SMALLEST_ROOT = 16_000_000_000
"""Bytes that an OS needs: smaller drives (virtual media, SATADOM) are no candidates of a rule."""


@dataclass(frozen=True, slots=True)
class KernelDrive:
    """A whole drive as the machine's own kernel reports it.

    path         `/dev/nvme0n1`
    serial, wwn  as udev or sysfs report them; empty where they do not
    fingerprint  SHA-256 over parts of the drive, read before anything was written; empty where it was not read
    content      what was found on it: a signature (`gpt`, `ext4`, `LVM2_member`) or other devices; empty: nothing
    """

    path: str
    serial: str
    wwn: str = ""
    model: str = ""
    size_bytes: int = 0
    fingerprint: str = ""
    content: str = ""

    def __str__(self) -> str:
        identity = self.serial or self.wwn or "without a serial"
        return f"{self.path} {identity} {self.model} {self.size_bytes / 1e9:.0f} GB".replace("  ", " ")


@dataclass(frozen=True, slots=True)
class DiskContract:
    """The drive that may be overwritten: by the identity that the BMC reported (its serial, or its WWN where it has
    one), else by the SKU's rule for what the machine itself sees.
    """

    serial: str
    wwn: str = ""
    rule: RootDisk | None = None

    def __str__(self) -> str:
        if self.by_rule:
            return f"rule ({self.rule})"
        return f"serial {self.serial}" + (f" or WWN {self.wwn}" if self.wwn else "")

    @property
    def by_rule(self) -> bool:
        """Whether no drive is named yet: the machine's own drives decide."""
        return self.rule is not None and not (self.serial or self.wwn)

    def choose(self, drives: Sequence[KernelDrive], where: str = "") -> KernelDrive:
        """Return the one drive that is meant. Raise `EdgeError`, naming all drives, where it is none or several."""
        fitting = [drive for drive in drives if self.fits(drive)]
        one_of = self.rule.one_of if self.by_rule and self.rule is not None else 1
        if len(fitting) == one_of and alike(fitting):
            chosen = min(fitting, key=lambda drive: (drive.serial, drive.wwn, drive.path))
            if chosen.serial or chosen.wwn:
                return chosen
            remedy = "put the OS on a drive that reports a serial or WWN: no other can be proven after the first boot"
            message = f"the drive that fits reports neither serial nor WWN: {chosen}"
            raise RootDiskUnclearError(message, where=where, remedy=remedy)
        raise self._none_or_several(fitting, drives, where)

    def _none_or_several(self, fitting: Sequence[KernelDrive], drives: Sequence[KernelDrive], where: str) -> EdgeError:
        number = f"{len(fitting)} drives" if fitting else "no drive"
        remedy = (
            "compare the drives that BMC and machine report: reseat or replace the root disk, and after an exchange "
            "run clusterctl discover on it again"
        )
        if self.by_rule:
            remedy = which_rule(fitting or drives, ("model",))
        return (RootDiskUnclearError if self.by_rule else EdgeError)(
            f"the machine sees {number} with the root disk's {self}; it sees "
            f"{', '.join(map(str, drives)) or 'none at all'}",
            where=where,
            remedy=remedy,
        )

    def named(self, drive: KernelDrive) -> DiskContract:
        """Return the contract for exactly this drive, by the identity that it reports."""
        return DiskContract(drive.serial, drive.wwn, self.rule)

    def fits(self, drive: KernelDrive) -> bool:
        """Return whether the drive is meant, by serial, by WWN, or by the rule where neither is known.

        What a drive does not report is never equal to anything.
        """
        if self.by_rule and self.rule is not None:
            return _as_asked(drive, self.rule)
        by_serial = bool(self.serial) and same_identity(self.serial, drive.serial)
        return by_serial or same_name(self.wwn, drive.wwn)


def _as_asked(drive: KernelDrive, rule: RootDisk) -> bool:
    """Return whether the drive is as the rule asks; a kernel knows no bay, controller and protocol."""
    serial = not rule.serial or same_identity(rule.serial, drive.serial)
    wwn = not rule.wwn or same_name(rule.wwn, drive.wwn)
    size = max(rule.min_bytes, SMALLEST_ROOT) <= drive.size_bytes <= rule.max_bytes
    return serial and wwn and size and rule.model.casefold() in drive.model.casefold()


class _Sized(Protocol):
    @property
    def model(self) -> str: ...
    @property
    def size_bytes(self) -> int: ...


def alike(drives: Sequence[_Sized]) -> bool:
    """Return whether all are of one model and size: then one is as good as the other."""
    return len({(drive.model.casefold(), drive.size_bytes) for drive in drives}) == 1


def which_rule(drives: Sequence[_Sized], names: Sequence[str]) -> str:
    """Return the remedy for a rule that does not single out one of `drives`: what to write into the SKU's root_disk.

    `names`: the fields by which the drives may differ, in addition to their size.
    """
    place = "in the SKU's root_disk"
    if len(drives) > 1 and alike(drives):
        return (
            f"they are alike: write one_of: {len(drives)} {place} where any one of them may get the OS, else "
            f"{', '.join(name for name in names if name != 'model') or 'serial'} or wwn to name one"
        )
    fields = ", ".join((*names, "min_gb", "max_gb", "serial", "wwn"))
    chosen = "" if "bay" in names else " with chosen_by: host"
    return f"write a rule{chosen} {place} that matches one drive, by {fields}"


def same_identity(one: str, other: str) -> bool:
    """Compare serials of one drive from different tools: case, blanks and udev's underscores for blanks may differ."""
    plain = [re.sub(r"[\s_]+", "", text).casefold() for text in (one, other)]
    return bool(plain[0]) and plain[0] == plain[1]


def same_name(one: str, other: str) -> bool:
    """Compare world-wide names of drives without their prefix (`0x`, `naa.`, `eui.`), dashes and case."""
    return same_identity(_bare(one), _bare(other))


def _bare(wwn: str) -> str:
    return re.sub(r"^(0x|naa\.|eui\.|nvme\.)", "", wwn.strip().casefold()).replace("-", "").replace(":", "")


ROOT, DATA = "root_disk_booted", "data_disks"
_NO_DRIVES = ("/dev/zram", "/dev/ram", "/dev/nbd")
_LOOK = "look at findmnt / and lsblk -o NAME,SERIAL,WWN on the host, then run clusterctl install on it again"


def judge_root(contract: DiskContract, source: str, disks: Sequence[KernelDrive], where: str) -> Finding:
    """Judge `disks`: those below the root file system, mounted from `source`. `where`: name and place of the host.

    Only one disk with a known identity can be the right one; a disk without identity is neither right nor wrong.
    """
    disk_names = ", ".join(map(str, disks))
    right = [disk for disk in disks if contract.fits(disk)]
    if not disks or any(not (disk.serial or disk.wwn) for disk in disks):
        seen = f"{source} lies on {disk_names}" if disks else f"lsblk does not know what {source} lies on"
        return unproven(ROOT, f"which disk the root file system is on is unknown: {seen}", expected=str(contract))
    if len(disks) == len(right) == 1:
        cause = f"the root file system ({source}) is on {disk_names}"
        return passed(ROOT, cause, measured=identity_of(disks[0]), expected=str(contract), serial=disks[0].serial)
    return Finding(
        check=ROOT,
        verdict=Verdict.FAIL,
        code=Code.ROOT_DISK_WRONG,
        cause=f"the root file system ({source}) is on {disk_names}, and not on the one disk with {contract}",
        measured=", ".join(map(identity_of, disks)),
        expected=str(contract),
        remedy=(
            f"{where}: set the disk with {contract} first in the boot order, and wipe or take out the disk that it "
            "boots from now; then run clusterctl install on it again"
        ),
        serial=disks[0].serial,
    )


def unseen(contract: DiskContract, before: Sequence[KernelDrive], after: Sequence[KernelDrive]) -> list[KernelDrive]:
    """Return the drives with data, without the root disk, that the installer did not see."""
    return [
        drive for drive in after if _holds_data(drive) and not contract.fits(drive) and not same_drive(drive, before)
    ]


def judge_data(
    contract: DiskContract, before: Sequence[KernelDrive], after: Sequence[KernelDrive], where: str
) -> tuple[Finding, ...]:
    """Compare each drive from before the install, without the root disk, with the present ones. Return a finding for
    each that is not as it was, or one for all. Drives that the installer did not see are a warning.
    """
    data = [drive for drive in before if not contract.fits(drive)]
    bad = [finding for drive in data if (finding := _judge_one(drive, same_drive(drive, after), where)) is not None]
    if bad:
        return tuple(bad)
    if added := unseen(contract, before, after):
        return (not_seen_before(added, len(data)),)
    names = ", ".join(map(identity_of, data)) or "none but the root disk"
    return (
        passed(
            DATA,
            f"each drive holds what it held before the install, in all places that were read: {names}",
            measured=f"{len(data)} as before",
            expected=f"{len(data)} as before",
        ),
    )


def data_to_compare(
    contract: DiskContract, before: Sequence[KernelDrive], now: Sequence[KernelDrive]
) -> tuple[str, ...]:
    """Return the paths, as they are now, of the drives with fingerprints that are to be read again."""
    again = (same_drive(drive, now) for drive in before if drive.fingerprint and not contract.fits(drive))
    return tuple(drive.path for drive in again if drive is not None)


def with_fingerprints(drives: Sequence[KernelDrive], digests: Mapping[str, str]) -> tuple[KernelDrive, ...]:
    """Return the drives with their fingerprints. `digests` are by path; a drive without one keeps none."""
    return tuple(replace(drive, fingerprint=digests.get(drive.path, "")) for drive in drives)


def not_compared() -> Finding:
    """Return the finding for an installer that reads nothing before it writes: no fault of the machine."""
    return Finding(
        check=DATA,
        verdict=Verdict.NOT_APPLICABLE,
        code=Code.NOT_APPLICABLE,
        cause="this installer does not report what the drives held before: that it left them alone is not proven",
        expected="fingerprints from before the install",
    )


def unproven(check: str, cause: str, expected: str = "") -> Finding:
    return Finding(
        check=check,
        verdict=Verdict.INCONCLUSIVE,
        code=Code.ROOT_DISK_UNCLEAR if check == ROOT else Code.DATA_UNPROVEN,
        cause=cause,
        expected=expected or None,
        remedy=_LOOK,
        deterministic=False,
    )


def _judge_one(before: KernelDrive, after: KernelDrive | None, where: str) -> Finding | None:
    """Return the finding; None where the drive is as it was."""
    name = identity_of(before)
    if after is None or not (before.fingerprint and after.fingerprint):
        why = "is no longer there" if after is None else "could not be read"
        if not before.fingerprint:
            why = "was not read before the install"
        return Finding(
            check=DATA,
            verdict=Verdict.INCONCLUSIVE,
            code=Code.DATA_UNPROVEN,
            subject=name,
            cause=f"whether the install has left {before} alone is unknown: it {why}",
            expected=before.fingerprint,
            remedy=f"{where}: reseat the drive {name} if it is gone, then run clusterctl install on it again",
            serial=before.serial,
            deterministic=False,
        )
    if after.fingerprint == before.fingerprint:
        return None
    return Finding(
        check=DATA,
        verdict=Verdict.FAIL,
        code=Code.DATA_CHANGED,
        subject=name,
        cause=f"{after} does not hold what it held before the install",
        measured=after.fingerprint,
        expected=before.fingerprint,
        remedy=(
            f"{where}: install nothing more before it is known what wrote to drive {name} (the installer, or the OS "
            "that booted); restore it from its backup"
        ),
        serial=before.serial,
    )


def _holds_data(drive: KernelDrive) -> bool:
    """Return False for empty slots of virtual media, and for drives of memory or of the network."""
    return drive.size_bytes > 0 and not drive.path.startswith(_NO_DRIVES)


def not_seen_before(drives: Sequence[KernelDrive], compared: int) -> Finding:
    names = ", ".join(map(str, drives))
    return Finding(
        check=DATA,
        verdict=Verdict.WARN,
        code=Code.DATA_UNPROVEN,
        cause=f"the installer did not see these drives, so that it left them alone is not proven: {names}",
        measured=f"{compared} as before, {len(drives)} not seen before",
        expected=f"{compared + len(drives)} as before",
        remedy="look whether the installer's kernel lacks their driver (docs/how-to/images.md), "
        "or they were added since",
    )


def same_drive(drive: KernelDrive, drives: Sequence[KernelDrive]) -> KernelDrive | None:
    """Return the same drive among the present ones; by path only where it never had an identity."""
    for other in drives:
        if same_identity(drive.serial, other.serial) or same_name(drive.wwn, other.wwn):
            return other
    if drive.serial or drive.wwn:
        return None
    return next((other for other in drives if other.path == drive.path and other.size_bytes == drive.size_bytes), None)


def identity_of(drive: KernelDrive) -> str:
    return drive.serial or drive.wwn or drive.path
