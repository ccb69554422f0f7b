"""A BMC whose network stack lives and whose web server does not."""

from __future__ import annotations

from dataclasses import replace

from clusterctl_lab.faults.fault import Fault, refuse_part
from clusterctl_lab.machine import BmcCondition, Machine


def _apply(machine: Machine, part: str) -> Machine:
    refuse_part(machine, part)
    return replace(machine, bmc=replace(machine.bmc, condition=BmcCondition.HANGS)).with_fault("hanging-bmc")


FAULT = Fault(
    name="hanging-bmc",
    does="the BMC takes connections and requests, and answers none",
    shows="TCP and TLS work, every HTTP request waits for ever",
    target="NODE",
    apply=_apply,
)
