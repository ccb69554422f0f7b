"""A port with a dirty connector: its errors are corrected or repeated, and they come all the time."""

from __future__ import annotations

from dataclasses import replace

from clusterctl_lab.faults.fault import Fault, hca_named, with_hca
from clusterctl_lab.machine import Machine, PortErrors

DIRTY = PortErrors(symbol_per_hour=36_000.0, receive_per_hour=108_000.0)
"""Ten symbol errors and thirty broken packets a second."""


def _apply(machine: Machine, part: str) -> Machine:
    hca = hca_named(machine, part)
    broken = replace(hca, errors=DIRTY)
    return with_hca(machine, broken).with_fault(f"port-errors:{hca.name}")


FAULT = Fault(
    name="port-errors",
    does="the error counters of an HCA's port grow all the time (the first one where none is named)",
    shows="perfquery, read twice",
    target="NODE or NODE:mlx5_3",
    apply=_apply,
)
