"""A node that stops amid a long sum over many nodes, and logs nothing."""

from __future__ import annotations

from dataclasses import replace

from clusterctl_lab.faults.fault import Fault, refuse_part
from clusterctl_lab.machine import Machine


def _apply(machine: Machine, part: str) -> Machine:
    refuse_part(machine, part)
    return replace(machine, system=replace(machine.system, sums_stop=True)).with_fault("hanging-sum")


FAULT = Fault(
    name="hanging-sum",
    does="amid a long sum over several nodes the node stops; it answers to everything else",
    shows="the load hang_hunt: Missing rank … it is silent; nothing while a sum is short",
    target="NODE",
    apply=_apply,
)
