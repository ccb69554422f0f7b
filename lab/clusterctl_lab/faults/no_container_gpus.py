"""A host whose Docker lacks NVIDIA's runtime."""

from __future__ import annotations

from dataclasses import replace

from clusterctl_lab.faults.fault import Fault, refuse_part
from clusterctl_lab.machine import Machine


def _apply(machine: Machine, part: str) -> Machine:
    refuse_part(machine, part)
    return replace(machine, system=replace(machine.system, container_gpus_lost=True)).with_fault("no-container-gpus")


FAULT = Fault(
    name="no-container-gpus",
    does="Docker gives no container GPUs",
    shows="docker run --gpus all: could not select device driver",
    target="NODE",
    apply=_apply,
)
