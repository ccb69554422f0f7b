"""A service that training needs and that systemd could not keep running."""

from __future__ import annotations

from dataclasses import replace

from clusterctl_lab.faults.fault import Fault, refuse_part
from clusterctl_lab.machine import Machine


def _apply(machine: Machine, part: str) -> Machine:
    refuse_part(machine, part)
    return replace(machine, system=replace(machine.system, unit_failed=True)).with_fault("failed-unit")


FAULT = Fault(
    name="failed-unit",
    does="nvidia-persistenced.service ends with an error whenever it is started",
    shows="systemctl list-units --failed",
    target="NODE",
    apply=_apply,
)
