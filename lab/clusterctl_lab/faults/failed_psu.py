"""One of the power supplies is broken; the others carry the machine."""

from __future__ import annotations

from dataclasses import replace

from clusterctl_lab.event_texts import Happening, told
from clusterctl_lab.faults.fault import Fault, no_such_part
from clusterctl_lab.machine import Machine


def _apply(machine: Machine, part: str) -> Machine:
    """The log entry is IPMI 2.0's table 42-3, sensor type 08h (Power Supply), offset 01h."""
    slots = tuple(psu.slot for psu in machine.psus)
    slot = part or next(iter(slots), "power supply")
    if slot not in slots:
        raise no_such_part(machine, slot, slots)
    psus = tuple(replace(psu, failed=True) if psu.slot == slot else psu for psu in machine.psus)
    entry = told(machine, Happening.SUPPLY_FAILED, slots.index(slot) + 1)
    return replace(machine, psus=psus, logged=(*machine.logged, entry)).with_fault(f"failed-psu:{slot}")


FAULT = Fault(
    name="failed-psu",
    does="one power supply fails (the first one where none is named)",
    shows="the BMC: the supply is Critical, an entry in its event log, health roll-up Critical; the OS notices nothing",
    target="NODE or NODE:PS3",
    apply=_apply,
)
