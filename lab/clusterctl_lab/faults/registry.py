"""All faults by name, and their injection: a new fault is an entry of `FAULTS` in the module of its subject."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType

from clusterctl.fleet.errors import UsageError
from clusterctl_lab.faults import cable, drive, gpu, hca, host, machine
from clusterctl_lab.faults.fault import Fault, Target
from clusterctl_lab.machine import Machine

FAULTS: Mapping[str, Fault] = MappingProxyType(
    {
        fault.name: fault
        for fault in sorted(
            (*cable.FAULTS, *drive.FAULTS, *gpu.FAULTS, *hca.FAULTS, *host.FAULTS, *machine.FAULTS),
            key=lambda fault: fault.name,
        )
    }
)
NO_MORE: Mapping[str, Fault] = MappingProxyType({})


def find(name: str, more: Mapping[str, Fault] = NO_MORE) -> Fault:
    """Return the fault with that name, of these or of `more`. Raises `UsageError` that lists the faults."""
    known = {**FAULTS, **more}
    if name not in known:
        raise UsageError(f"there is no fault {name!r}", where="fault", remedy=f"choose from: {', '.join(known)}")
    return known[name]


def inject(machines: Mapping[str, Machine], fault: str, target: str, more: Mapping[str, Fault] = NO_MORE) -> Machine:
    """Return the machine that `target` names, broken. Without a target it is the first machine without a fault."""
    kind = find(fault, more)
    if not target:
        return kind.apply(_first_healthy(machines), "")
    named = Target.parse(target)
    return kind.apply(machine_named(machines, named.node), named.part)


def inject_all(
    machines: Mapping[str, Machine], fault: str, target: str, more: Mapping[str, Fault] = NO_MORE
) -> tuple[Machine, ...]:
    """Return the broken machine, and its partner where one fault changes two machines, such as swapped cables."""
    broken = inject(machines, fault, target, more)
    others = partners(broken, broken.faults[-1:])
    return (broken, *(find(fault).apply(machine_named(machines, other.node), other.part) for other in others))


def partners(broken: Machine, labels: Iterable[str]) -> tuple[Target, ...]:
    """Return the other machines that the faults with these `labels` broke."""
    remembered = (label.partition(":") for label in labels)
    kinds = ((FAULTS[name], part) for name, _, part in remembered if name in FAULTS)
    return tuple(kind.partner(broken, part) for kind, part in kinds if kind.partner is not None)


def machine_named(machines: Mapping[str, Machine], name: str) -> Machine:
    """Return the machine with that name. Raises `UsageError` with the range of names."""
    if name not in machines:
        names = sorted(machines)
        raise UsageError(f"there is no {name}", where="target", remedy=f"the lab has {names[0]} to {names[-1]}")
    return machines[name]


def _first_healthy(machines: Mapping[str, Machine]) -> Machine:
    for candidate in machines.values():
        if not candidate.faults:
            return candidate
    raise UsageError("every machine has a fault already", where="target", remedy="name one, or clusterctl lab heal")
