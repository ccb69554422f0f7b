"""A processor that the firmware has switched off."""

from __future__ import annotations

from dataclasses import replace

from clusterctl_lab.faults.fault import Fault, refuse_part
from clusterctl_lab.machine import Machine


def _apply(machine: Machine, part: str) -> Machine:
    refuse_part(machine, part)
    return replace(machine, system=replace(machine.system, cpu_disabled=True)).with_fault("cpu-disabled")


FAULT = Fault(
    name="cpu-disabled",
    does="the firmware has switched the last processor off",
    shows="dmidecode -t 4: Disabled By BIOS",
    target="NODE",
    apply=_apply,
)
