"""NVLinks of a GPU that have found no peer."""

from __future__ import annotations

from dataclasses import replace

from clusterctl_lab.faults.fault import Fault, gpu_named, with_gpu
from clusterctl_lab.machine import Machine

DOWN = (4, 5)


def _apply(machine: Machine, part: str) -> Machine:
    gpu = gpu_named(machine, part)
    broken = replace(gpu, links_down=DOWN)
    return with_gpu(machine, broken).with_fault(f"nvlink-down:gpu{gpu.index}")


FAULT = Fault(
    name="nvlink-down",
    does="two NVLinks of a GPU stay down (the first GPU where none is named)",
    shows="nvidia-smi nvlink --status: these links are inactive",
    target="NODE or NODE:gpu5",
    apply=_apply,
)
