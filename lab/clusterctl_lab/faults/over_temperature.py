"""A machine that breathes hot air: a missing blanking panel, a closed cold aisle, a dead cooling unit."""

from __future__ import annotations

from dataclasses import replace

from clusterctl_lab.event_texts import Happening, told
from clusterctl_lab.faults.fault import Fault, refuse_part
from clusterctl_lab.machine import Machine

INLET_C = 46
"""Above 42, the upper critical threshold of the inlet sensor on a recorded PowerEdge."""
GPU_C, HBM_C = 88, 98
"""Where an H100 throttles by itself."""


def _apply(machine: Machine, part: str) -> Machine:
    """The log entry is IPMI 2.0's table 42-2, upper critical, of a sensor of type 01h (Temperature)."""
    refuse_part(machine, part)
    gpus = tuple(replace(gpu, temperature_c=GPU_C, memory_temperature_c=HBM_C) for gpu in machine.gpus)
    entry = told(machine, Happening.INLET_HOT, INLET_C)
    hot = replace(machine, inlet_c=INLET_C, gpus=gpus, logged=(*machine.logged, entry))
    return hot.with_fault("over-temperature")


FAULT = Fault(
    name="over-temperature",
    does=f"heats the air that the machine breathes to {INLET_C} °C, and its GPUs to {GPU_C} °C",
    shows="the BMC's inlet sensor above its critical threshold, an entry in its event log, health roll-up Critical; "
    "nvidia-smi's temperatures",
    target="NODE",
    apply=_apply,
)
