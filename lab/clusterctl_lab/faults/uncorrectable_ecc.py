"""A GPU whose memory has lost bits beyond repair."""

from __future__ import annotations

from dataclasses import replace

from clusterctl_lab.faults.fault import Fault, gpu_named, with_gpu
from clusterctl_lab.machine import Machine


def _apply(machine: Machine, part: str) -> Machine:
    gpu = gpu_named(machine, part)
    broken = replace(gpu, uncorrectable_ecc=2)
    return with_gpu(machine, broken).with_fault(f"uncorrectable-ecc:gpu{gpu.index}")


FAULT = Fault(
    name="uncorrectable-ecc",
    does="a GPU has uncorrectable memory errors (the first one where none is named)",
    shows="nvidia-smi (ECC errors, a pending row remapping), the kernel log (Xid 48)",
    target="NODE or NODE:gpu5",
    apply=_apply,
)
