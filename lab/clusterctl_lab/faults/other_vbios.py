"""A GPU with another VBIOS than its neighbours, as after a replacement."""

from __future__ import annotations

from dataclasses import replace

from clusterctl_lab.faults.fault import Fault, gpu_named, with_gpu
from clusterctl_lab.machine import Machine


def _apply(machine: Machine, part: str) -> Machine:
    gpu = gpu_named(machine, part)
    return with_gpu(machine, replace(gpu, vbios="96.00.30.00.01")).with_fault(f"other-vbios:gpu{gpu.index}")


FAULT = Fault(
    name="other-vbios",
    does="a GPU has an older VBIOS than its neighbours (the first one where none is named)",
    shows="nvidia-smi -q: VBIOS Version",
    target="NODE or NODE:gpu5",
    apply=_apply,
)
