"""A data drive at the end of its endurance: it still does all that it is asked, and its BMC calls it healthy."""

from __future__ import annotations

from dataclasses import replace

from clusterctl_lab.faults.fault import Fault, data_drive
from clusterctl_lab.machine import Machine

WORN = 104
"""Percent: drives that were in service before."""


def _apply(machine: Machine, part: str) -> Machine:
    bay, worn = data_drive(machine, part)
    drives = tuple(replace(drive, used_percent=WORN) if drive is worn else drive for drive in machine.drives)
    return replace(machine, drives=drives).with_fault(f"worn-nvme:{bay}")


FAULT = Fault(
    name="worn-nvme",
    does="one data drive has used up its endurance and its spare blocks (the first one where none is named)",
    shows="the drive's own health log (nvme smart-log)",
    target="NODE or NODE:bay2",
    apply=_apply,
)
