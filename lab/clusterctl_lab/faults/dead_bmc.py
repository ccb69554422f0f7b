"""A BMC that is not there: no power, no cable, or burnt."""

from __future__ import annotations

from dataclasses import replace

from clusterctl_lab.faults.fault import Fault, refuse_part
from clusterctl_lab.machine import BmcCondition, Machine


def _apply(machine: Machine, part: str) -> Machine:
    refuse_part(machine, part)
    return replace(machine, bmc=replace(machine.bmc, condition=BmcCondition.DEAD)).with_fault("dead-bmc")


FAULT = Fault(
    name="dead-bmc",
    does="takes the BMC off the network: its address is nobody's any more",
    shows="no ARP answer, no TCP connection; a running OS goes on without it",
    target="NODE",
    apply=_apply,
)
