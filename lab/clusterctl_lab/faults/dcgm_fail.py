"""A GPU that fails a test of NVIDIA's own diagnosis."""

from __future__ import annotations

from dataclasses import replace

from clusterctl_lab.faults.fault import Fault, gpu_named, with_gpu
from clusterctl_lab.machine import Machine

TEST = "memory"


def _apply(machine: Machine, part: str) -> Machine:
    gpu = gpu_named(machine, part)
    return with_gpu(machine, replace(gpu, fails_diag=TEST)).with_fault(f"dcgm-fail:gpu{gpu.index}")


FAULT = Fault(
    name="dcgm-fail",
    does="a GPU fails the memory test of dcgmi diag (the first one where none is named)",
    shows="dcgmi diag --run 2",
    target="NODE or NODE:gpu5",
    apply=_apply,
)
