"""A memory module has lost data: an uncorrectable ECC error, after which the machine goes on, or was started again."""

from __future__ import annotations

from dataclasses import replace

from clusterctl_lab.event_texts import Happening, told
from clusterctl_lab.faults.fault import Fault, no_such_part
from clusterctl_lab.machine import Machine


def _apply(machine: Machine, part: str) -> Machine:
    """The log entry is IPMI 2.0's table 42-3, sensor type 0Ch (Memory), offset 01h."""
    dimms = {dimm.slot: dimm for dimm in machine.dimms}
    slot = part or next(iter(dimms), "memory module")
    if slot not in dimms:
        raise no_such_part(machine, slot, tuple(dimms))
    entry = told(machine, Happening.DIMM_FAILED, dimms[slot].in_log)
    dimms[slot] = replace(dimms[slot], failed=True)
    logged = (*machine.logged, entry)
    return replace(machine, dimms=tuple(dimms.values()), logged=logged).with_fault(f"failed-dimm:{slot}")


FAULT = Fault(
    name="failed-dimm",
    does="one memory module has an uncorrectable error (the first one where none is named)",
    shows="the BMC: the module is Critical, an entry in its event log, health roll-up Critical; it still counts",
    target='NODE or "NODE:DIMM A3", as its BMC calls the socket',
    apply=_apply,
)
