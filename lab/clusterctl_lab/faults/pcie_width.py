"""A GPU or an adapter whose PCIe link was trained with half its lanes."""

from __future__ import annotations

from dataclasses import replace

from clusterctl_lab.faults.fault import Fault, gpu_named, hca_named, with_gpu, with_hca
from clusterctl_lab.machine import Machine

LANES = 8


def _apply(machine: Machine, part: str) -> Machine:
    if part.startswith("mlx5"):
        hca = hca_named(machine, part)
        return with_hca(machine, replace(hca, pcie_width=LANES)).with_fault(f"pcie-width:{hca.name}")
    gpu = gpu_named(machine, part)
    return with_gpu(machine, replace(gpu, pcie_width=LANES)).with_fault(f"pcie-width:gpu{gpu.index}")


FAULT = Fault(
    name="pcie-width",
    does="a GPU or an HCA has 8 of its 16 PCIe lanes (the first GPU where none is named)",
    shows="nvidia-smi for a GPU, the kernel log for an HCA, lspci for both",
    target="NODE or NODE:gpu5 or NODE:mlx5_2",
    apply=_apply,
)
