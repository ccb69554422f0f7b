"""A host that gets a small part of its processors' time, as under a forgotten power cap or somebody's CPU quota."""

from __future__ import annotations

from dataclasses import replace

from clusterctl.fleet.errors import UsageError
from clusterctl_lab.faults.fault import Fault
from clusterctl_lab.machine import Machine

PERCENT = "10"


def _apply(machine: Machine, part: str) -> Machine:
    percent = part or PERCENT
    if not percent.isdecimal() or not 1 <= int(percent) <= 100:
        remedy = f"write the percent of one core, from 1 to 100, like {machine.name}:10"
        raise UsageError(f"{percent!r} is no quota", where=machine.name, remedy=remedy)
    quota = replace(machine.system, cpu_percent=int(percent))
    return replace(machine, system=quota).with_fault(f"cpu-straggler:{percent}")


FAULT = Fault(
    name="cpu-straggler",
    does="gives all processes of the host together a few percent of one core (10 where no number is named)",
    shows="work that needs a second of processor time takes ten; nothing else on the host explains it",
    target="NODE or NODE:10",
    apply=_apply,
)
