"""A data drive that has failed: it still answers, and says that it is dead."""

from __future__ import annotations

from dataclasses import replace

from clusterctl_lab.event_texts import Happening, told
from clusterctl_lab.faults.fault import Fault, data_drive
from clusterctl_lab.machine import Machine


def _apply(machine: Machine, part: str) -> Machine:
    """The log entry is IPMI 2.0's table 42-3, sensor type 0Dh (Drive Slot), offset 01h."""
    bay, dead = data_drive(machine, part)
    entry = told(machine, Happening.DRIVE_FAILED, bay.removeprefix("bay"), dead.slot)
    drives = tuple(replace(drive, failed=True) if drive is dead else drive for drive in machine.drives)
    return replace(machine, drives=drives, logged=(*machine.logged, entry)).with_fault(f"dead-nvme:{bay}")


FAULT = Fault(
    name="dead-nvme",
    does="one data drive fails (the first one where none is named)",
    shows="the BMC: the drive is Critical with a predicted failure, an entry in its event log, health roll-up Critical",
    target="NODE or NODE:bay2",
    apply=_apply,
)
