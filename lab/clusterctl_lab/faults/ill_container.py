"""A host whose monitoring container is unhealthy."""

from __future__ import annotations

from dataclasses import replace

from clusterctl_lab.faults.fault import Fault, refuse_part
from clusterctl_lab.machine import Machine


def _apply(machine: Machine, part: str) -> Machine:
    refuse_part(machine, part)
    return replace(machine, system=replace(machine.system, container_ill=True)).with_fault("ill-container")


FAULT = Fault(
    name="ill-container",
    does="the container dcgm-exporter is unhealthy",
    shows="docker ps: Up 3 hours (unhealthy)",
    target="NODE",
    apply=_apply,
)
