"""A GPU driver that does not load, as after a kernel that DKMS knew nothing of."""

from __future__ import annotations

from dataclasses import replace

from clusterctl_lab.faults.fault import Fault, refuse_part
from clusterctl_lab.machine import Machine


def _apply(machine: Machine, part: str) -> Machine:
    refuse_part(machine, part)
    return replace(machine, system=replace(machine.system, driver_lost=True)).with_fault("driver-lost")


FAULT = Fault(
    name="driver-lost",
    does="the GPUs' driver is installed and not loaded",
    shows="nvidia-smi: couldn't communicate with the NVIDIA driver",
    target="NODE",
    apply=_apply,
)
