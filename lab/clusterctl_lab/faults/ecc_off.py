"""A GPU whose memory is not corrected."""

from __future__ import annotations

from dataclasses import replace

from clusterctl_lab.faults.fault import Fault, gpu_named, with_gpu
from clusterctl_lab.machine import Machine


def _apply(machine: Machine, part: str) -> Machine:
    gpu = gpu_named(machine, part)
    return with_gpu(machine, replace(gpu, ecc=False)).with_fault(f"ecc-off:gpu{gpu.index}")


FAULT = Fault(
    name="ecc-off",
    does="a GPU's ECC is off (the first one where none is named)",
    shows="nvidia-smi -q: ECC Mode, Current: Disabled",
    target="NODE or NODE:gpu5",
    apply=_apply,
)
