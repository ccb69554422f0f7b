"""Power supplies that carry each part of the machine, and not all of them at the same time."""

from __future__ import annotations

from dataclasses import replace

from clusterctl_lab.faults.fault import Fault, refuse_part
from clusterctl_lab.machine import Machine


def _apply(machine: Machine, part: str) -> Machine:
    refuse_part(machine, part)
    return replace(machine, system=replace(machine.system, weak_power=True)).with_fault("weak-power")


FAULT = Fault(
    name="weak-power",
    does="its power supplies do not carry GPUs and processors that work at the same time: the server brakes the GPUs",
    shows="nvidia-smi under all loads at once: clocks_event_reasons.active 0x88; nothing while GPUs work alone",
    target="NODE",
    apply=_apply,
)
