"""A GPU whose driver goes to sleep while nobody uses it: persistence mode is off."""

from __future__ import annotations

from dataclasses import replace

from clusterctl_lab.faults.fault import Fault, gpu_named, with_gpu
from clusterctl_lab.machine import Machine


def _apply(machine: Machine, part: str) -> Machine:
    gpu = gpu_named(machine, part)
    return with_gpu(machine, replace(gpu, persistence=False)).with_fault(f"persistence-off:gpu{gpu.index}")


FAULT = Fault(
    name="persistence-off",
    does="persistence mode of a GPU is off (of the first one where none is named)",
    shows="nvidia-smi -q: Persistence Mode",
    target="NODE or NODE:gpu5",
    apply=_apply,
)
