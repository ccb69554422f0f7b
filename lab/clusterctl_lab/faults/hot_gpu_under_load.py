"""A GPU that is cool while it idles and too hot when it works: dried paste, a duct half closed."""

from __future__ import annotations

from dataclasses import replace

from clusterctl_lab.faults.fault import Fault, gpu_named, with_gpu
from clusterctl_lab.machine import Machine

LOAD_C = 89
"""Where an H100's hardware halves its clock."""


def _apply(machine: Machine, part: str) -> Machine:
    gpu = gpu_named(machine, part)
    return with_gpu(machine, replace(gpu, load_c=LOAD_C)).with_fault(f"hot-gpu-under-load:gpu{gpu.index}")


FAULT = Fault(
    name="hot-gpu-under-load",
    does=f"a GPU is at {LOAD_C} °C under load, and its hardware slows it down (the first one where none is named)",
    shows="nvidia-smi under load: clocks_event_reasons.active 0x48",
    target="NODE or NODE:gpu5",
    apply=_apply,
)
