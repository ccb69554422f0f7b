"""A GPU whose heat sink is loose: hotter than its neighbours, and not yet too hot."""

from __future__ import annotations

from dataclasses import replace

from clusterctl_lab.faults.fault import Fault, gpu_named, with_gpu
from clusterctl_lab.machine import Machine

GPU_C = 68
"""Below the limit that an idle GPU is held to, far above its neighbours'."""


def _apply(machine: Machine, part: str) -> Machine:
    gpu = gpu_named(machine, part)
    return with_gpu(machine, replace(gpu, temperature_c=GPU_C)).with_fault(f"hot-gpu:gpu{gpu.index}")


FAULT = Fault(
    name="hot-gpu",
    does=f"an idle GPU is at {GPU_C} °C while its neighbours are cool (the first one where none is named)",
    shows="nvidia-smi -q: GPU Current Temp",
    target="NODE or NODE:gpu5",
    apply=_apply,
)
