"""Two cables plugged into each other's cage: every link is up, and two of them lead to the wrong leaf."""

from __future__ import annotations

from dataclasses import replace

from clusterctl.fleet.errors import UsageError
from clusterctl_lab.faults.fault import Fault, no_such_part
from clusterctl_lab.machine import Machine


def _apply(machine: Machine, part: str) -> Machine:
    hcas = {hca.name: hca for hca in machine.hcas}
    names = tuple(part.split(",")) if part else tuple(hcas)[:2]
    for name in names:
        if name not in hcas:
            raise no_such_part(machine, name, tuple(hcas))
    if len(set(names)) != 2:
        raise UsageError(
            "two different HCAs are needed to swap their cables",
            where=machine.name,
            remedy="write NODE:mlx5_0,mlx5_1; the lab's machines need at least two rails",
        )
    first, second = (hcas[name] for name in names)
    if first.cable == second.cable:
        raise UsageError("neither HCA has a cable", where=machine.name, remedy=f"heal {machine.name} first")
    hcas[first.name] = replace(first, cable=second.cable)
    hcas[second.name] = replace(second, cable=first.cable)
    return replace(machine, hcas=tuple(hcas.values())).with_fault(f"swapped-cable:{first.name},{second.name}")


FAULT = Fault(
    name="swapped-cable",
    does="swaps the far ends of two HCAs' cables (the first two where none are named)",
    shows="ibnetdiscover against the wiring plan; every link stays up",
    target="NODE or NODE:mlx5_0,mlx5_1",
    apply=_apply,
)
