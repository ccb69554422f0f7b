"""What a fault is, how its target is written, and the constructors that most faults use."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import TypeVar

from clusterctl.fleet.errors import UsageError
from clusterctl_lab.machine import Dimm, Drive, Gpu, Hca, Machine, System

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Fault:
    """One kind of fault.

    does     what it changes about the machine
    shows    which tools find it
    target   how the target is written on the command line
    apply    returns the broken machine; the second argument is the part, empty where the operator named none. It
             raises `UsageError` for a part that the machine does not have (any more).
    partner  returns the other machine and its part, for a fault of two machines; the second argument is the part in
             the machine's fault label
    """

    name: str
    does: str
    shows: str
    target: str
    apply: Callable[[Machine, str], Machine]
    partner: Callable[[Machine, str], Target] | None = None


@dataclass(frozen=True, slots=True)
class Target:
    """`node003:gpu5`: a node and optionally one of its parts."""

    node: str
    part: str = ""

    @classmethod
    def parse(cls, text: str) -> Target:
        """Raises `UsageError` where no node is named."""
        node, _, part = text.strip().partition(":")
        if not node:
            raise UsageError(f"{text!r} names no node", where="target", remedy="write NODE or NODE:PART, like node003")
        return cls(node, part)


def no_such_part(machine: Machine, part: str, parts: tuple[str, ...]) -> UsageError:
    """Return the error for a part that is absent; it lists the parts."""
    has = ", ".join(parts) if parts else "none"
    return UsageError(f"has no {part}", where=machine.name, remedy=f"choose from: {has}")


def refuse_part(machine: Machine, part: str) -> None:
    """Raise `UsageError` where a part is named for a fault of the whole machine."""
    if part:
        raise UsageError(f"the fault takes no part, found {part!r}", where=machine.name, remedy="name the node only")


def hca_named(machine: Machine, name: str) -> Hca:
    """Return the HCA with that name, the first one for an empty name. Raises `UsageError` that lists them."""
    return named({hca.name: hca for hca in machine.hcas}, machine, name, "HCA")[1]


def with_hca(machine: Machine, changed: Hca) -> Machine:
    """Return the machine with that HCA in place of the one with its name."""
    return replace(machine, hcas=tuple(changed if hca.name == changed.name else hca for hca in machine.hcas))


def gpu_named(machine: Machine, name: str) -> Gpu:
    """Return the GPU with that name (`gpu5`), the first one for an empty name. Raises `UsageError` that lists them."""
    return named({f"gpu{gpu.index}": gpu for gpu in machine.gpus}, machine, name, "GPU")[1]


def with_gpu(machine: Machine, changed: Gpu) -> Machine:
    """Return the machine with that GPU in place of the one with its index."""
    return replace(machine, gpus=tuple(changed if gpu.index == changed.index else gpu for gpu in machine.gpus))


def data_drive(machine: Machine, bay: str) -> tuple[str, Drive]:
    """Return the bay, such as `bay2`, and its data drive; the first one for an empty `bay`.

    Raises `UsageError` that lists the bays.
    """
    data = (drive for drive in machine.drives if not drive.boot)
    return named({f"bay{number}": drive for number, drive in enumerate(data)}, machine, bay, "data drive")


def with_drive(machine: Machine, old: Drive, changed: Drive) -> Machine:
    """Return the machine with `changed` in place of the drive `old`."""
    return replace(machine, drives=tuple(changed if drive is old else drive for drive in machine.drives))


def named(parts: Mapping[str, T], machine: Machine, name: str, kind: str) -> tuple[str, T]:
    """Return the name and the part with that name, the first part for an empty name. Raises `UsageError`."""
    chosen = name or next(iter(parts), kind)
    if chosen not in parts:
        raise no_such_part(machine, chosen, tuple(parts))
    return chosen, parts[chosen]


FIRST = "(default: the first {})"


def gpu_fault(name: str, *, does: str, shows: str, change: Callable[[Gpu], Gpu]) -> Fault:
    """Return a fault of one GPU."""

    def apply(machine: Machine, part: str) -> Machine:
        gpu = gpu_named(machine, part)
        return with_gpu(machine, change(gpu)).with_fault(f"{name}:gpu{gpu.index}")

    return Fault(name, f"{does} {FIRST.format('GPU')}", shows, "NODE or NODE:gpu5", apply)


def hca_fault(name: str, *, does: str, shows: str, change: Callable[[Hca], Hca]) -> Fault:
    """Return a fault of one HCA, of its port or of the PCIe switch above it."""

    def apply(machine: Machine, part: str) -> Machine:
        hca = hca_named(machine, part)
        return with_hca(machine, change(hca)).with_fault(f"{name}:{hca.name}")

    return Fault(name, f"{does} {FIRST.format('HCA')}", shows, "NODE or NODE:mlx5_3", apply)


def drive_fault(name: str, *, does: str, shows: str, change: Callable[[Drive], Drive]) -> Fault:
    """Return a fault of one data drive."""

    def apply(machine: Machine, part: str) -> Machine:
        bay, drive = data_drive(machine, part)
        return with_drive(machine, drive, change(drive)).with_fault(f"{name}:{bay}")

    return Fault(name, f"{does} {FIRST.format('data drive')}", shows, "NODE or NODE:bay2", apply)


DIMM_TARGET = 'NODE or "NODE:DIMM A3" (the name of the socket in the BMC)'


def dimm_fault(name: str, *, does: str, shows: str, change: Callable[[Dimm], Dimm]) -> Fault:
    """Return a fault of one memory module."""

    def apply(machine: Machine, part: str) -> Machine:
        dimms = {dimm.slot: dimm for dimm in machine.dimms}
        slot, dimm = named(dimms, machine, part, "memory module")
        changed = tuple((dimms | {slot: change(dimm)}).values())
        return replace(machine, dimms=changed).with_fault(f"{name}:{slot}")

    return Fault(name, f"{does} {FIRST.format('module')}", shows, DIMM_TARGET, apply)


def system_fault(name: str, *, does: str, shows: str, change: Callable[[System], System]) -> Fault:
    """Return a fault of the running host as a whole."""
    return machine_fault(name, does=does, shows=shows, change=lambda m: replace(m, system=change(m.system)))


def machine_fault(name: str, *, does: str, shows: str, change: Callable[[Machine], Machine]) -> Fault:
    """Return a fault of the machine as a whole; it takes no part."""

    def apply(machine: Machine, part: str) -> Machine:
        refuse_part(machine, part)
        return change(machine).with_fault(name)

    return Fault(name, does, shows, "NODE", apply)
