"""A GPU that multiplies slower than its neighbours, and yet fast enough for any fixed limit."""

from __future__ import annotations

from dataclasses import replace

from clusterctl_lab.faults.fault import Fault, gpu_named, with_gpu
from clusterctl_lab.machine import Machine

PERCENT = 80
"""Of a sound one: above the floor of the limits file."""


def _apply(machine: Machine, part: str) -> Machine:
    gpu = gpu_named(machine, part)
    return with_gpu(machine, replace(gpu, speed_percent=PERCENT)).with_fault(f"slow-gpu:gpu{gpu.index}")


FAULT = Fault(
    name="slow-gpu",
    does=f"a GPU does {PERCENT} % of the work that its neighbours do (the first one where none is named)",
    shows="the load gpu_load: its product, against the best of the node",
    target="NODE or NODE:gpu5",
    apply=_apply,
)
