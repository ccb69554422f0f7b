"""A data drive that reads far more slowly than its like, and calls itself healthy."""

from __future__ import annotations

from dataclasses import replace

from clusterctl_lab.faults.fault import Fault, data_drive
from clusterctl_lab.machine import Machine


def _apply(machine: Machine, part: str) -> Machine:
    bay, slow = data_drive(machine, part)
    drives = tuple(replace(drive, slow=True) if drive is slow else drive for drive in machine.drives)
    return replace(machine, drives=drives).with_fault(f"slow-nvme:{bay}")


FAULT = Fault(
    name="slow-nvme",
    does="one data drive reads at a twelfth of its speed and calls itself healthy (the first one where none is named)",
    shows="random reads from all drives at once (fio), and nothing that asks the drive itself",
    target="NODE or NODE:bay2",
    apply=_apply,
)
