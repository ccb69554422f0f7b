"""Judges the data drives of a host that an installer blanks: each must be as the installer leaves it."""

from __future__ import annotations

from collections.abc import Sequence

from clusterctl.fleet.finding import Finding, Verdict, passed
from clusterctl.fleet.finding_code import Code
from clusterctl.fleet.hardware.disk_contract import (
    DATA,
    DiskContract,
    KernelDrive,
    identity_of,
    not_seen_before,
    same_drive,
    unseen,
)


def judge_blank(
    contract: DiskContract, known: Sequence[KernelDrive], now: Sequence[KernelDrive], where: str
) -> tuple[Finding, ...]:
    """Judge the present drives, without the root disk. `known`: those that the installer knew, and has blanked.

    Return a finding for each known drive that is absent or holds something, or one for all. A drive that the installer
    did not know is a warning. `where`: name and place of the host.
    """
    data = [drive for drive in known if not contract.fits(drive)]
    bad = [finding for drive in data if (finding := _judge_one(drive, same_drive(drive, now), where)) is not None]
    if bad:
        return tuple(bad)
    if added := unseen(contract, known, now):
        return (not_seen_before(added, len(data)),)
    names = ", ".join(map(identity_of, data)) or "none but the root disk"
    cause = f"each drive that the installer has blanked is blank, without partitions and file systems: {names}"
    return (passed(DATA, cause, measured=f"{len(data)} blank", expected=f"{len(data)} blank"),)


def _judge_one(known: KernelDrive, now: KernelDrive | None, where: str) -> Finding | None:
    """Return the finding; None where the drive is blank."""
    if now is not None and not now.content:
        return None
    name = identity_of(known)
    if now is None:
        cause = f"what the install has left on {known} is unknown: it is no longer there"
        remedy = f"{where}: reseat the drive {name}, then run clusterctl install on it again"
    else:
        cause = f"{now} holds {now.content}: the installer blanks each drive that it knows, so it was written since"
        remedy = (
            f"{where}: find out what wrote to drive {name} (the image, its user data); if that may go, wipefs --all "
            f"{now.path}, then run clusterctl install on it again"
        )
    return Finding(
        check=DATA,
        verdict=Verdict.INCONCLUSIVE,
        code=Code.DATA_UNPROVEN,
        subject=name,
        cause=cause,
        measured=now.content if now is not None else "absent",
        expected="blank",
        remedy=remedy,
        serial=known.serial,
    )
