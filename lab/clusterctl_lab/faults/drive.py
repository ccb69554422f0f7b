"""Faults of drives."""

from __future__ import annotations

from dataclasses import replace

from clusterctl.fleet.errors import UsageError
from clusterctl_lab.event_texts import BmcEvent, log_entry
from clusterctl_lab.faults.fault import Fault, data_drive, drive_fault, refuse_part, with_drive
from clusterctl_lab.machine import Machine

USED_PERCENT = 104
"""Of the warranted endurance: a drive that was in service before."""
PENDING_SECTORS = 8


def _dead_nvme(machine: Machine, part: str) -> Machine:
    """The log entry is IPMI 2.0's table 42-3, sensor type 0Dh (Drive Slot), offset 01h."""
    bay, dead = data_drive(machine, part)
    entry = log_entry(machine, BmcEvent.DRIVE_FAILED, bay.removeprefix("bay"), dead.slot)
    broken = with_drive(machine, dead, replace(dead, failed=True))
    return replace(broken, logged=(*machine.logged, entry)).with_fault(f"dead-nvme:{bay}")


def _pending_sectors(machine: Machine, part: str) -> Machine:
    refuse_part(machine, part)
    sata = next((drive for drive in machine.drives if drive.boot and "AHCI" in drive.slot), None)
    if sata is None:
        remedy = "choose a machine with a SATA boot disk: a lab of PowerEdge servers has one"
        raise UsageError("the boot disk is no SATA drive", where=machine.name, remedy=remedy)
    return with_drive(machine, sata, replace(sata, pending_sectors=PENDING_SECTORS)).with_fault("pending-sectors")


def _wrong_boot_disk(machine: Machine, part: str) -> Machine:
    bay, drive = data_drive(machine, part)
    return replace(machine, boots_from=drive.serial).with_fault(f"wrong-boot-disk:{bay}")


FAULTS = (
    Fault(
        name="dead-nvme",
        does="a data drive fails (default: the first data drive)",
        shows="the BMC: the drive is Critical with a predicted failure, an entry in its event log, health roll-up "
        "Critical",
        target="NODE or NODE:bay2",
        apply=_dead_nvme,
    ),
    drive_fault(
        "lost-block",
        does="a data drive could not read a block, and reports itself healthy",
        shows="the drive's error log (nvme error-log), status 2h/81h",
        change=lambda drive: replace(drive, lost_block=True),
    ),
    Fault(
        name="pending-sectors",
        does="the SATA boot disk holds sectors that it cannot read, and its own verdict is PASSED",
        shows="smartctl -x: Current_Pending_Sector; nothing in the BMC",
        target="NODE",
        apply=_pending_sectors,
    ),
    Fault(
        name="wrong-boot-disk",
        does="puts an older, foreign OS on a data drive and that drive first in the boot order (default: the first "
        "data drive)",
        shows="after the install another OS answers: another host name, other SSH host keys, no key of ours",
        target="NODE or NODE:bay2",
        apply=_wrong_boot_disk,
    ),
    drive_fault(
        "slow-nvme",
        does="a data drive reads at a twelfth of its speed and reports itself healthy",
        shows="random reads from all drives at once (fio); not the drive's own health log",
        change=lambda drive: replace(drive, slow=True),
    ),
    drive_fault(
        "worn-nvme",
        does="a data drive has used up its endurance and its spare blocks",
        shows="the drive's own health log (nvme smart-log)",
        change=lambda drive: replace(drive, used_percent=USED_PERCENT),
    ),
)
