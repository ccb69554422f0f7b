"""A host that was booted without iommu=pt."""

from __future__ import annotations

from dataclasses import replace

from clusterctl_lab.faults.fault import Fault, refuse_part
from clusterctl_lab.machine import Machine


def _apply(machine: Machine, part: str) -> Machine:
    refuse_part(machine, part)
    return replace(machine, system=replace(machine.system, iommu_translates=True)).with_fault("iommu-translates")


FAULT = Fault(
    name="iommu-translates",
    does="its IOMMU translates what GPUs and adapters read and write",
    shows="/sys/kernel/iommu_groups/*/type: DMA-FQ",
    target="NODE",
    apply=_apply,
)
