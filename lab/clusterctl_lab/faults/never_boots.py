"""A machine that takes power and never gets through its power-on self-test."""

from __future__ import annotations

from dataclasses import replace

from clusterctl_lab.faults.fault import Fault, refuse_part
from clusterctl_lab.machine import Machine


def _apply(machine: Machine, part: str) -> Machine:
    refuse_part(machine, part)
    return replace(machine, boots=False).with_fault("never-boots")


FAULT = Fault(
    name="never-boots",
    does="from its next power-on, the machine hangs in POST",
    shows="the BMC: power is on, its event log says that POST did not complete; the installer never hears from it",
    target="NODE",
    apply=_apply,
)
