"""What an install did to a machine's drives, judged after it booted: the OS runs from the right one, the others are as
they were.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from clusterctl.fleet.disk_contract import DiskContract, SeenDrive, same_identity, same_name
from clusterctl.fleet.finding import Finding, Verdict, passed
from clusterctl.fleet.finding_code import Code

ROOT, DATA = "root_disk_booted", "data_disks"
_NO_DRIVES = ("/dev/zram", "/dev/ram", "/dev/nbd")
_LOOK = "look at findmnt / and lsblk -o NAME,SERIAL,WWN on the host, then run clusterctl install on it again"


def judge_root(contract: DiskContract, source: str, disks: Sequence[SeenDrive], where: str) -> Finding:
    """`disks` are those that the root file system, mounted from `source`, lies on. `where`: name and place of the host.

    Only one disk that says who it is can be the right one; a disk that says nothing can be neither.
    """
    told = ", ".join(map(str, disks))
    right = [disk for disk in disks if contract.fits(disk)]
    if not disks or any(not (disk.serial or disk.wwn) for disk in disks):
        seen = f"{source} lies on {told}" if disks else f"lsblk does not know what {source} lies on"
        return unproven(ROOT, f"which disk the root file system is on cannot be told: {seen}", expected=str(contract))
    if len(disks) == len(right) == 1:
        cause = f"the root file system ({source}) is on {told}"
        return passed(ROOT, cause, measured=_identity(disks[0]), expected=str(contract))
    return Finding(
        check=ROOT,
        verdict=Verdict.FAIL,
        code=Code.ROOT_DISK_WRONG,
        cause=f"the root file system ({source}) is on {told}, and not on the one disk with {contract}",
        measured=", ".join(map(_identity, disks)),
        expected=str(contract),
        remedy=(
            f"{where}: set the disk with {contract} first in the boot order, and wipe or take out the disk that it "
            "boots from now; then run clusterctl install on it again"
        ),
        serial=disks[0].serial,
    )


def judge_data(
    contract: DiskContract, before: Sequence[SeenDrive], after: Sequence[SeenDrive], where: str
) -> tuple[Finding, ...]:
    """Each drive that was there before the install, but for the root disk, against what is there now. A finding for
    each that is not as it was, or one for all. Drives that the installer did not see are a warning.
    """
    data = [drive for drive in before if not contract.fits(drive)]
    bad = [finding for drive in data if (finding := _judge_one(drive, _again(drive, after), where)) is not None]
    if bad:
        return tuple(bad)
    unseen = [drive for drive in after if _holds_data(drive) and not contract.fits(drive) and not _again(drive, before)]
    if unseen:
        return (_not_seen_before(unseen, len(data)),)
    names = ", ".join(map(_identity, data)) or "none but the root disk"
    return (
        passed(
            DATA,
            f"each drive holds what it held before the install, in all places that were read: {names}",
            measured=f"{len(data)} as before",
            expected=f"{len(data)} as before",
        ),
    )


def data_to_compare(contract: DiskContract, before: Sequence[SeenDrive], now: Sequence[SeenDrive]) -> tuple[str, ...]:
    """The paths, as they are now, of the drives whose fingerprints are to be read again."""
    again = (_again(drive, now) for drive in before if drive.fingerprint and not contract.fits(drive))
    return tuple(drive.path for drive in again if drive is not None)


def with_fingerprints(drives: Sequence[SeenDrive], digests: Mapping[str, str]) -> tuple[SeenDrive, ...]:
    """`digests` by path; a drive without one keeps none."""
    return tuple(SeenDrive(d.path, d.serial, d.wwn, d.model, d.size_bytes, digests.get(d.path, "")) for d in drives)


def untold() -> Finding:
    """Where an installer reads nothing before it writes, nothing can be compared: said, and no fault of the machine."""
    return Finding(
        check=DATA,
        verdict=Verdict.NOT_APPLICABLE,
        code=Code.NOT_APPLICABLE,
        cause="this installer does not tell what the drives held before: that it left them alone is not proven",
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


def _judge_one(before: SeenDrive, after: SeenDrive | None, where: str) -> Finding | None:
    """None where it is as it was."""
    name = _identity(before)
    if after is None or not (before.fingerprint and after.fingerprint):
        why = "is no longer there" if after is None else "could not be read"
        if not before.fingerprint:
            why = "was not read before the install"
        return Finding(
            check=DATA,
            verdict=Verdict.INCONCLUSIVE,
            code=Code.DATA_UNPROVEN,
            subject=name,
            cause=f"whether the install has left {before} alone cannot be told: it {why}",
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


def _holds_data(drive: SeenDrive) -> bool:
    """Not so empty slots of virtual media, and what is made of memory or of the network."""
    return drive.size_bytes > 0 and not drive.path.startswith(_NO_DRIVES)


def _not_seen_before(drives: Sequence[SeenDrive], compared: int) -> Finding:
    names = ", ".join(map(str, drives))
    return Finding(
        check=DATA,
        verdict=Verdict.WARN,
        code=Code.DATA_UNPROVEN,
        cause=f"the installer did not see these drives, so that it left them alone is not proven: {names}",
        measured=f"{compared} as before, {len(drives)} not seen before",
        expected=f"{compared + len(drives)} as before",
        remedy="look whether the installer's kernel lacks their driver (docs/images.md), or they were added since",
    )


def _again(drive: SeenDrive, drives: Sequence[SeenDrive]) -> SeenDrive | None:
    """The same drive among those that are there now; by path only where it never said who it is."""
    for other in drives:
        if same_identity(drive.serial, other.serial) or same_name(drive.wwn, other.wwn):
            return other
    if drive.serial or drive.wwn:
        return None
    return next((other for other in drives if other.path == drive.path and other.size_bytes == drive.size_bytes), None)


def _identity(drive: SeenDrive) -> str:
    return drive.serial or drive.wwn or drive.path
