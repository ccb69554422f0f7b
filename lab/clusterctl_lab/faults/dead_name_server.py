"""A host whose name server nobody reaches."""

from __future__ import annotations

from dataclasses import replace

from clusterctl_lab.faults.fault import Fault, refuse_part
from clusterctl_lab.machine import Machine


def _apply(machine: Machine, part: str) -> Machine:
    refuse_part(machine, part)
    return replace(machine, system=replace(machine.system, names_lost=True)).with_fault("dead-name-server")


FAULT = Fault(
    name="dead-name-server",
    does="the host's resolv.conf names an address that is nobody's",
    shows="getent hosts takes seconds and finds nothing",
    target="NODE",
    apply=_apply,
)
