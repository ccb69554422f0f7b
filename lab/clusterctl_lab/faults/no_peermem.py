"""A host whose adapters cannot get at GPU memory."""

from __future__ import annotations

from dataclasses import replace

from clusterctl_lab.faults.fault import Fault, refuse_part
from clusterctl_lab.machine import Machine


def _apply(machine: Machine, part: str) -> Machine:
    refuse_part(machine, part)
    return replace(machine, system=replace(machine.system, peermem_lost=True)).with_fault("no-peermem")


FAULT = Fault(
    name="no-peermem",
    does="nvidia-peermem is not loaded, under a driver whose kernel modules are not the open ones",
    shows="lsmod; /proc/driver/nvidia/version",
    target="NODE",
    apply=_apply,
)
