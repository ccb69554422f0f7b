"""A GPU that did not join the NVSwitches: CUDA does not start on it together with the others."""

from __future__ import annotations

from dataclasses import replace

from clusterctl_lab.faults.fault import Fault, gpu_named, with_gpu
from clusterctl_lab.machine import Machine


def _apply(machine: Machine, part: str) -> Machine:
    gpu = gpu_named(machine, part)
    return with_gpu(machine, replace(gpu, fabric_state="In Progress")).with_fault(f"fabric-not-joined:gpu{gpu.index}")


FAULT = Fault(
    name="fabric-not-joined",
    does="a GPU hangs on its way into the NVLink fabric (the first one where none is named)",
    shows="nvidia-smi -q: Fabric, State",
    target="NODE or NODE:gpu5",
    apply=_apply,
)
