"""A memory module that the firmware has not started: it is in its socket, and the OS gets the others."""

from __future__ import annotations

from dataclasses import replace

from clusterctl_lab.faults.fault import Fault, no_such_part
from clusterctl_lab.machine import Machine


def _apply(machine: Machine, part: str) -> Machine:
    dimms = {dimm.slot: dimm for dimm in machine.dimms}
    slot = part or next(iter(dimms), "memory module")
    if slot not in dimms:
        raise no_such_part(machine, slot, tuple(dimms))
    dimms[slot] = replace(dimms[slot], seen=False)
    return replace(machine, dimms=tuple(dimms.values())).with_fault(f"lost-dimm:{slot}")


FAULT = Fault(
    name="lost-dimm",
    does="the firmware leaves one memory module out since the BMC looked (the first one where none is named)",
    shows="dmidecode -t 17 lacks it",
    target='NODE or "NODE:DIMM A3", as its BMC calls the socket',
    apply=_apply,
)
