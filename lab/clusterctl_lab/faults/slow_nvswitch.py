"""GPUs that reach each other slowly, over NVLinks that are all up."""

from __future__ import annotations

from dataclasses import replace

from clusterctl_lab.faults.fault import Fault, refuse_part
from clusterctl_lab.machine import Machine


def _apply(machine: Machine, part: str) -> Machine:
    refuse_part(machine, part)
    return replace(machine, system=replace(machine.system, nvswitch_slow=True)).with_fault("slow-nvswitch")


FAULT = Fault(
    name="slow-nvswitch",
    does="what the node's GPUs sum among themselves takes seconds a step; all their NVLinks are up",
    shows="all_reduce_perf over the node alone: a small bus bandwidth; sums over several nodes are as ever",
    target="NODE",
    apply=_apply,
)
