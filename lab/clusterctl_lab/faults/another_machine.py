"""Another machine at the node's address: two cables or two addresses were mixed up."""

from __future__ import annotations

from dataclasses import replace

from clusterctl_lab.faults.fault import Fault, refuse_part
from clusterctl_lab.machine import Machine


def _apply(machine: Machine, part: str) -> Machine:
    refuse_part(machine, part)
    return replace(machine, system=replace(machine.system, is_another=True)).with_fault("another-machine")


FAULT = Fault(
    name="another-machine",
    does="the host that answers has another serial number than the BMC's machine",
    shows="dmidecode -s system-serial-number",
    target="NODE",
    apply=_apply,
)
