"""A process that sleeps in the kernel and cannot be asked to end: what a dead file server or driver leaves behind."""

from __future__ import annotations

from dataclasses import replace

from clusterctl_lab.faults.fault import Fault, refuse_part
from clusterctl_lab.machine import Machine


def _apply(machine: Machine, part: str) -> Machine:
    refuse_part(machine, part)
    return replace(machine, system=replace(machine.system, stuck_process=True)).with_fault("stuck-process")


FAULT = Fault(
    name="stuck-process",
    does="a process of the host stays in state D: it waits in vfork(2) for a child that never goes on",
    shows="ps: state D, no processor time; signals but SIGKILL do nothing",
    target="NODE",
    apply=_apply,
)
