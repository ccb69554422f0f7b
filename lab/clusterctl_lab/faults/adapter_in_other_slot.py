"""An adapter that was put into another slot: it is below a PCIe switch of its own, and its GPU has none beside it."""

from __future__ import annotations

from dataclasses import replace

from clusterctl_lab.faults.fault import Fault, hca_named, with_hca
from clusterctl_lab.machine import Machine

PCI = "0000:ee:00.0"


def _apply(machine: Machine, part: str) -> Machine:
    hca = hca_named(machine, part)
    return with_hca(machine, replace(hca, pci=PCI)).with_fault(f"adapter-in-other-slot:{hca.name}")


FAULT = Fault(
    name="adapter-in-other-slot",
    does="an HCA is in a slot that belongs to no GPU (the first HCA where none is named)",
    shows="nvidia-smi topo -m: SYS or NODE instead of PIX",
    target="NODE or NODE:mlx5_2",
    apply=_apply,
)
