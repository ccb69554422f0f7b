"""A link that has trained to half its rate: a dirty end face, a bad transceiver."""

from __future__ import annotations

from dataclasses import replace

from clusterctl_lab.faults.fault import Fault, hca_named, with_hca
from clusterctl_lab.machine import Machine

RATE_GBPS = 200


def _apply(machine: Machine, part: str) -> Machine:
    hca = hca_named(machine, part)
    return with_hca(machine, replace(hca, rate_gbps=RATE_GBPS)).with_fault(f"down-speed-link:{hca.name}")


FAULT = Fault(
    name="down-speed-link",
    does=f"lets one HCA's link train to {RATE_GBPS} Gb/s only (the first HCA's where none is named)",
    shows="ibnetdiscover: 4xHDR instead of 4xNDR; ibstat: Rate 200",
    target="NODE or NODE:mlx5_3",
    apply=_apply,
)
