"""A machine that was somebody else's: its firmware prefers a data drive that still holds their OS."""

from __future__ import annotations

from dataclasses import replace

from clusterctl_lab.faults.fault import Fault, data_drive
from clusterctl_lab.machine import Machine


def _apply(machine: Machine, part: str) -> Machine:
    bay, drive = data_drive(machine, part)
    return replace(machine, boots_from=drive.serial).with_fault(f"wrong-boot-disk:{bay}")


FAULT = Fault(
    name="wrong-boot-disk",
    does="puts an older OS of somebody else on a data drive and that drive first in the boot order (the first drive "
    "where none is named)",
    shows="after the install another OS answers: another host name, other SSH host keys, no key of ours",
    target="NODE or NODE:bay2",
    apply=_apply,
)
