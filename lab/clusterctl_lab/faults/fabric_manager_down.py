"""A host whose fabric manager is stopped: the next reset of a GPU leaves it without NVLink."""

from __future__ import annotations

from dataclasses import replace

from clusterctl_lab.faults.fault import Fault, refuse_part
from clusterctl_lab.machine import Machine


def _apply(machine: Machine, part: str) -> Machine:
    refuse_part(machine, part)
    system = replace(machine.system, fabric_manager_stopped=True)
    return replace(machine, system=system).with_fault("fabric-manager-down")


FAULT = Fault(
    name="fabric-manager-down",
    does="stops nvidia-fabricmanager.service",
    shows="systemctl says inactive",
    target="NODE",
    apply=_apply,
)
