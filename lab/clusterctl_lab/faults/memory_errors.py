"""A memory module that wears out: ECC mends what it reads, again and again."""

from __future__ import annotations

from dataclasses import replace

from clusterctl_lab.faults.fault import Fault, no_such_part
from clusterctl_lab.machine import Machine

PER_HOUR = 400
"""Some hundred times what rasdaemon calls too many for one page of memory (50 in 24 hours)."""


def _apply(machine: Machine, part: str) -> Machine:
    dimms = {dimm.slot: dimm for dimm in machine.dimms}
    slot = part or next(iter(dimms), "memory module")
    if slot not in dimms:
        raise no_such_part(machine, slot, tuple(dimms))
    dimms[slot] = replace(dimms[slot], corrected_per_hour=PER_HOUR)
    return replace(machine, dimms=tuple(dimms.values())).with_fault(f"memory-errors:{slot}")


FAULT = Fault(
    name="memory-errors",
    does="one memory module has hundreds of corrected errors an hour (the first one where none is named)",
    shows="the kernel's EDAC counters; the BMC has not noticed yet",
    target='NODE or "NODE:DIMM A3", as its BMC calls the socket',
    apply=_apply,
)
