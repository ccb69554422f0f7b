"""A management cable that carries nothing any more; the host itself runs on."""

from __future__ import annotations

from dataclasses import replace

from clusterctl_lab.faults.fault import Fault, refuse_part
from clusterctl_lab.machine import Machine


def _apply(machine: Machine, part: str) -> Machine:
    refuse_part(machine, part)
    return replace(machine, system=replace(machine.system, network_lost=True)).with_fault("network-lost")


FAULT = Fault(
    name="network-lost",
    does="takes the management interface's link away",
    shows="connections to the host run into their time-outs; the BMC says that power is on",
    target="NODE",
    apply=_apply,
)
