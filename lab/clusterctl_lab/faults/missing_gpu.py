"""A GPU that fell off the bus, or never sat in its socket."""

from __future__ import annotations

from dataclasses import replace

from clusterctl.fleet.errors import UsageError
from clusterctl_lab.faults.fault import Fault, no_such_part
from clusterctl_lab.machine import Machine


def _apply(machine: Machine, part: str) -> Machine:
    present = {f"gpu{gpu.index}": gpu for gpu in machine.gpus}
    if not present:
        raise UsageError("has no GPU left", where=machine.name, remedy=f"heal it: clusterctl lab heal {machine.name}")
    name = part or max(present, key=lambda key: present[key].index)
    if name not in present:
        raise no_such_part(machine, name, tuple(present))
    gone = present[name]
    return replace(machine, gpus=tuple(gpu for gpu in machine.gpus if gpu is not gone)).with_fault(
        f"missing-gpu:{name}"
    )


FAULT = Fault(
    name="missing-gpu",
    does="takes one GPU out of the machine (the last one where none is named)",
    shows="the BMC's processors, nvidia-smi, the PCI bus: one fewer than the SKU says",
    target="NODE or NODE:gpu5",
    apply=_apply,
)
