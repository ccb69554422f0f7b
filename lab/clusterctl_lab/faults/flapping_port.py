"""A port whose link goes down and comes up again."""

from __future__ import annotations

from dataclasses import replace

from clusterctl_lab.faults.fault import Fault, hca_named, with_hca
from clusterctl_lab.machine import Machine

FLAPS = 9


def _apply(machine: Machine, part: str) -> Machine:
    hca = hca_named(machine, part)
    broken = replace(hca, errors=replace(hca.errors, link_downed=hca.errors.link_downed + FLAPS))
    return with_hca(machine, broken).with_fault(f"flapping-port:{hca.name}")


FAULT = Fault(
    name="flapping-port",
    does="the link of an HCA has gone down and up again and again (the first one where none is named)",
    shows="perfquery (LinkDownedCounter), the kernel log (Link DOWN, Link ACTIVE)",
    target="NODE or NODE:mlx5_3",
    apply=_apply,
)
