"""An HCA that is not seated, or dead: it is on no bus, and its cable hangs from the switch."""

from __future__ import annotations

from dataclasses import replace

from clusterctl_lab.faults.fault import Fault, hca_named
from clusterctl_lab.machine import Machine


def _apply(machine: Machine, part: str) -> Machine:
    gone = hca_named(machine, part)
    hcas = tuple(hca for hca in machine.hcas if hca is not gone)
    return replace(machine, hcas=hcas).with_fault(f"missing-hca:{gone.name}")


FAULT = Fault(
    name="missing-hca",
    does="takes one HCA out of the machine (the first one where none is named)",
    shows="the BMC's network adapters, the PCI bus, ibstat: one fewer than the SKU says; the fabric: a port less",
    target="NODE or NODE:mlx5_3",
    apply=_apply,
)
