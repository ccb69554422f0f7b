"""A GPU whose memory has used up its spare rows."""

from __future__ import annotations

from dataclasses import replace

from clusterctl_lab.faults.fault import Fault, gpu_named, with_gpu
from clusterctl_lab.machine import Machine


def _apply(machine: Machine, part: str) -> Machine:
    gpu = gpu_named(machine, part)
    broken = replace(gpu, remap_failed=True, remapped_rows=gpu.remapped_rows + 8, xids=(*gpu.xids, 64))
    return with_gpu(machine, broken).with_fault(f"row-remap-failure:gpu{gpu.index}")


FAULT = Fault(
    name="row-remap-failure",
    does="a GPU cannot replace a faulty memory row any more (the first one where none is named)",
    shows="nvidia-smi (Remapping Failure Occurred), the kernel log (Xid 64)",
    target="NODE or NODE:gpu5",
    apply=_apply,
)
