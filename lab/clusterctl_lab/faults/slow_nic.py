"""An HCA that passes a small part of what it should, with its link up and all its counters clean."""

from __future__ import annotations

from dataclasses import replace

from clusterctl_lab.faults.fault import Fault, hca_named, with_hca
from clusterctl_lab.machine import Machine, Shaping

MBIT_S = 20


def _apply(machine: Machine, part: str) -> Machine:
    hca = hca_named(machine, part)
    return with_hca(machine, replace(hca, shaping=Shaping(MBIT_S))).with_fault(f"slow-nic:{hca.name}")


FAULT = Fault(
    name="slow-nic",
    does=f"shapes one HCA's traffic to {MBIT_S} Mbit/s, both ways (the first HCA where none is named)",
    shows="ib_write_bw over that HCA is slow with every partner; its link is up at its full rate",
    target="NODE or NODE:mlx5_3",
    apply=_apply,
)
