"""Processors that do not leave their base clock, whatever is asked of them."""

from __future__ import annotations

from dataclasses import replace

from clusterctl_lab.faults.fault import Fault, refuse_part
from clusterctl_lab.machine import Machine

STUCK_MHZ = 2000


def _apply(machine: Machine, part: str) -> Machine:
    refuse_part(machine, part)
    return replace(machine, system=replace(machine.system, stuck_mhz=STUCK_MHZ)).with_fault("slow-cores")


FAULT = Fault(
    name="slow-cores",
    does="all processors stay at 2 GHz under load",
    shows="turbostat, while the processors are busy",
    target="NODE",
    apply=_apply,
)
