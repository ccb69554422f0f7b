"""An adapter that nobody has updated."""

from __future__ import annotations

from dataclasses import replace

from clusterctl_lab.faults.fault import Fault, hca_named, with_hca
from clusterctl_lab.machine import Machine

OLD = "28.35.2000"


def _apply(machine: Machine, part: str) -> Machine:
    hca = hca_named(machine, part)
    broken = replace(hca, firmware=OLD)
    return with_hca(machine, broken).with_fault(f"old-nic-firmware:{hca.name}")


FAULT = Fault(
    name="old-nic-firmware",
    does="an HCA runs firmware of 2022 (the first one where none is named)",
    shows="ibstat, the kernel log, the BMC's firmware inventory",
    target="NODE or NODE:mlx5_3",
    apply=_apply,
)
