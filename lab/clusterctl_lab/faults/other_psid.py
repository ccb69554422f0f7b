"""An adapter of another make than its neighbours, whose firmware is another one's: a board that was not ordered."""

from __future__ import annotations

from dataclasses import replace

from clusterctl_lab.faults.fault import Fault, hca_named, with_hca
from clusterctl_lab.machine import Machine


def _apply(machine: Machine, part: str) -> Machine:
    hca = hca_named(machine, part)
    return with_hca(machine, replace(hca, psid="MT_0000000834")).with_fault(f"other-psid:{hca.name}")


FAULT = Fault(
    name="other-psid",
    does="an HCA is another board than was ordered (the first one where none is named)",
    shows="/sys/class/infiniband/*/board_id; mstflint query",
    target="NODE or NODE:mlx5_3",
    apply=_apply,
)
