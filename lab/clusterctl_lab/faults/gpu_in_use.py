"""A GPU that somebody left in use: a process that hangs holds its memory."""

from __future__ import annotations

from dataclasses import replace

from clusterctl_lab.faults.fault import Fault, gpu_named, with_gpu
from clusterctl_lab.machine import Machine

HELD_MIB = 40536


def _apply(machine: Machine, part: str) -> Machine:
    gpu = gpu_named(machine, part)
    return with_gpu(machine, replace(gpu, memory_used_mib=HELD_MIB)).with_fault(f"gpu-in-use:gpu{gpu.index}")


FAULT = Fault(
    name="gpu-in-use",
    does="a process that nobody sees holds a GPU's memory (the first one where none is named)",
    shows="nvidia-smi -q: FB Memory Usage, Used",
    target="NODE or NODE:gpu5",
    apply=_apply,
)
