"""A port whose link is up and that no subnet manager has configured."""

from __future__ import annotations

from dataclasses import replace

from clusterctl_lab.faults.fault import Fault, hca_named, with_hca
from clusterctl_lab.machine import Machine


def _apply(machine: Machine, part: str) -> Machine:
    hca = hca_named(machine, part)
    return with_hca(machine, replace(hca, configured=False)).with_fault(f"port-not-active:{hca.name}")


FAULT = Fault(
    name="port-not-active",
    does="the host's port stays in the state Initializing (the first one where none is named)",
    shows="ibstat: State: Initializing, Physical state: LinkUp",
    target="NODE or NODE:mlx5_2",
    apply=_apply,
)
