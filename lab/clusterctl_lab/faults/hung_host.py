"""A host whose kernel runs and whose every process stands still: it answers pings, and nothing else."""

from __future__ import annotations

from dataclasses import replace

from clusterctl_lab.faults.fault import Fault, refuse_part
from clusterctl_lab.machine import Machine


def _apply(machine: Machine, part: str) -> Machine:
    refuse_part(machine, part)
    return replace(machine, system=replace(machine.system, frozen=True)).with_fault("hung-host")


FAULT = Fault(
    name="hung-host",
    does="freezes every process of the host",
    shows="TCP connects to port 22, and no banner comes; the BMC says that power is on",
    target="NODE",
    apply=_apply,
)
