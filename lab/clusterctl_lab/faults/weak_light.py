"""A fibre with dirt on its end: the link is up, and has no margin left."""

from __future__ import annotations

from dataclasses import replace

from clusterctl_lab.faults.fault import Fault, hca_named, with_hca
from clusterctl_lab.machine import Machine

WEAK_DBM = -11.0


def _apply(machine: Machine, part: str) -> Machine:
    hca = hca_named(machine, part)
    return with_hca(machine, replace(hca, rx_dbm=WEAK_DBM)).with_fault(f"weak-light:{hca.name}")


FAULT = Fault(
    name="weak-light",
    does="an HCA's transceiver gets too little light (the first one where none is named)",
    shows="mlxlink -m: Rx power below the module's own range",
    target="NODE or NODE:mlx5_3",
    apply=_apply,
)
