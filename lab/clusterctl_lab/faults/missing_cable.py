"""A cable that was never plugged in, or fell out."""

from __future__ import annotations

from dataclasses import replace

from clusterctl.fleet.errors import UsageError
from clusterctl_lab.faults.fault import Fault, hca_named, with_hca
from clusterctl_lab.machine import Machine


def _apply(machine: Machine, part: str) -> Machine:
    hca = hca_named(machine, part)
    if hca.cable is None:
        raise UsageError(f"{hca.name} has no cable", where=machine.name, remedy=f"heal {machine.name} first")
    return with_hca(machine, replace(hca, cable=None)).with_fault(f"missing-cable:{hca.name}")


FAULT = Fault(
    name="missing-cable",
    does="pulls the cable of one HCA (the first one where none is named)",
    shows="ibnetdiscover: both ports have no peer; ibstat: Down, Polling",
    target="NODE or NODE:mlx5_3",
    apply=_apply,
)
