"""All faults, by name: a new one is a file here and a line below."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from clusterctl.fleet.errors import UsageError
from clusterctl.lab.faults import missing_gpu, never_boots, swapped_cable
from clusterctl.lab.faults.fault import Fault, Target
from clusterctl.lab.machine import Machine

FAULTS: Mapping[str, Fault] = MappingProxyType(
    {fault.name: fault for fault in (missing_gpu.FAULT, never_boots.FAULT, swapped_cable.FAULT)}
)


def find(name: str) -> Fault:
    """Raises `UsageError` naming the faults that there are."""
    if name not in FAULTS:
        raise UsageError(f"there is no fault {name!r}", where="fault", remedy=f"choose from: {', '.join(FAULTS)}")
    return FAULTS[name]


def inject(machines: Mapping[str, Machine], fault: str, target: str) -> Machine:
    """The machine that `target` names, broken. Without a target: the first one that has no fault yet."""
    kind = find(fault)
    if not target:
        return kind.apply(_first_healthy(machines), "")
    named = Target.parse(target)
    return kind.apply(machine_named(machines, named.node), named.part)


def machine_named(machines: Mapping[str, Machine], name: str) -> Machine:
    """Raises `UsageError` saying which machines there are."""
    if name not in machines:
        names = sorted(machines)
        raise UsageError(f"there is no {name}", where="target", remedy=f"the lab has {names[0]} to {names[-1]}")
    return machines[name]


def _first_healthy(machines: Mapping[str, Machine]) -> Machine:
    for machine in machines.values():
        if not machine.faults:
            return machine
    raise UsageError("every machine has a fault already", where="target", remedy="name one, or clusterctl lab heal")
