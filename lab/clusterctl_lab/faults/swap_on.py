"""Swap that somebody has turned on."""

from __future__ import annotations

from dataclasses import replace

from clusterctl_lab.faults.fault import Fault, refuse_part
from clusterctl_lab.machine import Machine


def _apply(machine: Machine, part: str) -> Machine:
    refuse_part(machine, part)
    return replace(machine, system=replace(machine.system, swap_on=True)).with_fault("swap-on")


FAULT = Fault(
    name="swap-on",
    does="a partition is used as swap",
    shows="swapon --show",
    target="NODE",
    apply=_apply,
)
