"""A clock that is hours off, as after a dead RTC battery and without a time server."""

from __future__ import annotations

from dataclasses import replace

from clusterctl.fleet.errors import UsageError
from clusterctl_lab.faults.fault import Fault
from clusterctl_lab.machine import Machine

HOURS = "3"
MOST_HOURS = 1000


def _apply(machine: Machine, part: str) -> Machine:
    hours = part or HOURS
    remedy = f"write hours other than 0, from -{MOST_HOURS} to {MOST_HOURS}, like {machine.name}:-2"
    try:
        offset = int(hours) * 3600
    except ValueError:
        raise UsageError(f"{hours!r} is no whole number of hours", where=machine.name, remedy=remedy) from None
    if not 0 < abs(offset) <= MOST_HOURS * 3600:
        raise UsageError(f"a clock cannot be {hours} hours off", where=machine.name, remedy=remedy)
    return replace(machine, system=replace(machine.system, clock_offset_s=offset)).with_fault(f"clock-off:{hours}")


FAULT = Fault(
    name="clock-off",
    does="sets the clock that the host's processes see ahead by some hours (3 where none are named)",
    shows="date on the host against the controller's",
    target="NODE or NODE:-2",
    apply=_apply,
)
