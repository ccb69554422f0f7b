"""A node whose part of a sum over many nodes is wrong, and that finds nothing wrong with itself."""

from __future__ import annotations

from dataclasses import replace

from clusterctl_lab.faults.fault import Fault, refuse_part
from clusterctl_lab.machine import Machine


def _apply(machine: Machine, part: str) -> Machine:
    refuse_part(machine, part)
    return replace(machine, system=replace(machine.system, sums_wrong=True)).with_fault("wrong-sums")


FAULT = Fault(
    name="wrong-sums",
    does="what the node gives to an all-reduce is wrong; every node of its group sees a wrong sum",
    shows="all_reduce_perf: #wrong, Out of bounds values",
    target="NODE",
    apply=_apply,
)
