"""A host with another OS release than was installed on its neighbours."""

from __future__ import annotations

from dataclasses import replace

from clusterctl_lab.faults.fault import Fault, refuse_part
from clusterctl_lab.machine import Machine


def _apply(machine: Machine, part: str) -> Machine:
    refuse_part(machine, part)
    return replace(machine, system=replace(machine.system, other_release=True)).with_fault("other-release")


FAULT = Fault(
    name="other-release",
    does="the host's /etc/os-release tells of Debian 10",
    shows="/etc/os-release",
    target="NODE",
    apply=_apply,
)
