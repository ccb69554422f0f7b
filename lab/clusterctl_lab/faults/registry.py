"""All faults, by name: a new one is a file here with a `FAULT` in it."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Iterable, Iterator, Mapping
from types import MappingProxyType

from clusterctl.fleet.errors import UsageError
from clusterctl_lab.faults.fault import Fault, Target
from clusterctl_lab.machine import Machine

_NOT_FAULTS = {"fault", "registry"}
_PACKAGE = __name__.rpartition(".")[0]


def _faults() -> Iterator[Fault]:
    for found in pkgutil.iter_modules(importlib.import_module(_PACKAGE).__path__):
        if found.name in _NOT_FAULTS:
            continue
        fault = vars(importlib.import_module(f"{_PACKAGE}.{found.name}")).get("FAULT")
        if not isinstance(fault, Fault):
            raise TypeError(f"{found.name} in {_PACKAGE} has no FAULT")
        yield fault


FAULTS: Mapping[str, Fault] = MappingProxyType({fault.name: fault for fault in _faults()})
NO_MORE: Mapping[str, Fault] = MappingProxyType({})


def find(name: str, more: Mapping[str, Fault] = NO_MORE) -> Fault:
    """The fault of that name, of these or of `more`. Raises `UsageError` naming the faults that there are."""
    known = {**FAULTS, **more}
    if name not in known:
        raise UsageError(f"there is no fault {name!r}", where="fault", remedy=f"choose from: {', '.join(known)}")
    return known[name]


def inject(machines: Mapping[str, Machine], fault: str, target: str, more: Mapping[str, Fault] = NO_MORE) -> Machine:
    """The machine that `target` names, broken. Without a target: the first one that has no fault yet."""
    kind = find(fault, more)
    if not target:
        return kind.apply(_first_healthy(machines), "")
    named = Target.parse(target)
    return kind.apply(machine_named(machines, named.node), named.part)


def inject_all(
    machines: Mapping[str, Machine], fault: str, target: str, more: Mapping[str, Fault] = NO_MORE
) -> tuple[Machine, ...]:
    """As `inject`, and whoever is broken with it: two cables that are swapped are two machines'."""
    machine = inject(machines, fault, target, more)
    others = partners(machine, machine.faults[-1:])
    return (machine, *(find(fault).apply(machine_named(machines, other.node), other.part) for other in others))


def partners(machine: Machine, labels: Iterable[str]) -> tuple[Target, ...]:
    """Who else is broken by the faults that the machine remembers as `labels`."""
    remembered = (label.partition(":") for label in labels)
    kinds = ((FAULTS[name], part) for name, _, part in remembered if name in FAULTS)
    return tuple(kind.partner(machine, part) for kind, part in kinds if kind.partner is not None)


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
