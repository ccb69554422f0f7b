"""A GPU that its host has lost while it ran: the BMC still lists it, and nobody can talk to it."""

from __future__ import annotations

from dataclasses import replace

from clusterctl_lab.faults.fault import Fault, gpu_named, with_gpu
from clusterctl_lab.machine import Machine


def _apply(machine: Machine, part: str) -> Machine:
    gpu = gpu_named(machine, part)
    broken = replace(gpu, on_bus=False)
    return with_gpu(machine, broken).with_fault(f"gpu-off-the-bus:gpu{gpu.index}")


FAULT = Fault(
    name="gpu-off-the-bus",
    does="a GPU leaves the PCI bus while the machine runs (the first one where none is named)",
    shows="the kernel log (Xid 79); nvidia-smi names it as lost and answers nothing else; the BMC lists it",
    target="NODE or NODE:gpu5",
    apply=_apply,
)
