"""A memory module that gives back other bits than were written, once all of the memory is worked on."""

from __future__ import annotations

from dataclasses import replace

from clusterctl_lab.faults.fault import Fault, no_such_part
from clusterctl_lab.machine import Machine


def _apply(machine: Machine, part: str) -> Machine:
    dimms = {dimm.slot: dimm for dimm in machine.dimms}
    slot = part or next(iter(dimms), "memory module")
    if slot not in dimms:
        raise no_such_part(machine, slot, tuple(dimms))
    dimms[slot] = replace(dimms[slot], flips=True)
    return replace(machine, dimms=tuple(dimms.values())).with_fault(f"wrong-memory:{slot}")


FAULT = Fault(
    name="wrong-memory",
    does="one memory module loses bits under full load, and only then (the first one where none is named)",
    shows="stress-ng's own check of its results, and the kernel's EDAC counters while it runs",
    target='NODE or "NODE:DIMM A3", as its BMC calls the socket',
    apply=_apply,
)
