"""One of the fans stands still; the others cool the machine."""

from __future__ import annotations

from dataclasses import replace

from clusterctl_lab.event_texts import Happening, told
from clusterctl_lab.faults.fault import Fault, no_such_part
from clusterctl_lab.machine import Machine


def _apply(machine: Machine, part: str) -> Machine:
    """The log entry is IPMI 2.0's table 42-2, Lower Critical - going low, of sensor type 04h (Fan)."""
    fans = {fan.slot: fan for fan in machine.fans}
    slot = part or next(iter(fans), "fan")
    if slot not in fans:
        raise no_such_part(machine, slot, tuple(fans))
    entry = told(machine, Happening.FAN_FAILED, fans[slot].in_log)
    fans[slot] = replace(fans[slot], failed=True)
    logged = (*machine.logged, entry)
    return replace(machine, fans=tuple(fans.values()), logged=logged).with_fault(f"failed-fan:{slot}")


FAULT = Fault(
    name="failed-fan",
    does="one fan stands still (the first one where none is named)",
    shows="the BMC: the fan turns no more and is Critical, an entry in its event log, health roll-up Critical",
    target='NODE or "NODE:System Board Fan3A", as its BMC calls it',
    apply=_apply,
)
