"""A PCIe switch whose link to the processor was trained with half its lanes: all that is below it shares them."""

from __future__ import annotations

from dataclasses import replace

from clusterctl_lab.faults.fault import Fault, hca_named, with_hca
from clusterctl_lab.machine import Machine

LANES = 8


def _apply(machine: Machine, part: str) -> Machine:
    hca = hca_named(machine, part)
    return with_hca(machine, replace(hca, switch_width=LANES)).with_fault(f"pcie-switch-width:{hca.name}")


FAULT = Fault(
    name="pcie-switch-width",
    does="the PCIe switch above an HCA and a GPU has 8 of its 16 lanes to the processor (of the first HCA's)",
    shows="lspci for the switch's upper port and the root port; the kernel log for the HCA",
    target="NODE or NODE:mlx5_2",
    apply=_apply,
)
