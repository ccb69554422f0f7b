"""What a fault is, and how a person names one with its target."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from clusterctl.fleet.errors import UsageError
from clusterctl_lab.machine import Drive, Gpu, Hca, Machine


@dataclass(frozen=True, slots=True)
class Fault:
    """One kind of fault.

    does    what it changes about the machine, for a person
    shows   where a tool that looks well enough finds it
    target  how the target is written on the command line
    apply   the broken machine; the second argument is the part, empty where the person named none. It raises
            `UsageError` for a part that the machine does not have (any more).
    partner who is broken with it, and in which part, where one fault takes two machines; the second argument is the
            part that the machine remembers
    """

    name: str
    does: str
    shows: str
    target: str
    apply: Callable[[Machine, str], Machine]
    partner: Callable[[Machine, str], Target] | None = None


@dataclass(frozen=True, slots=True)
class Target:
    """`node003:gpu5`: a node and, perhaps, a part of it."""

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
    """The error for a part that is not there; says which are."""
    has = ", ".join(parts) if parts else "none"
    return UsageError(f"has no {part}", where=machine.name, remedy=f"choose from: {has}")


def refuse_part(machine: Machine, part: str) -> None:
    """For a fault of the machine as a whole: `UsageError` where the person named a part."""
    if part:
        raise UsageError(f"the fault takes no part, found {part!r}", where=machine.name, remedy="name the node only")


def hca_named(machine: Machine, name: str) -> Hca:
    """The HCA of that name; the first one where `name` is empty. Raises `UsageError` saying which there are."""
    hcas = {hca.name: hca for hca in machine.hcas}
    chosen = name or next(iter(hcas), "HCA")
    if chosen not in hcas:
        raise no_such_part(machine, chosen, tuple(hcas))
    return hcas[chosen]


def with_hca(machine: Machine, changed: Hca) -> Machine:
    """The machine with that HCA in the place of the one of its name."""
    return replace(machine, hcas=tuple(changed if hca.name == changed.name else hca for hca in machine.hcas))


def data_drive(machine: Machine, bay: str) -> tuple[str, Drive]:
    """The data drive in that bay, like `bay2`, and the bay; the first one where `bay` is empty.

    Raises `UsageError` saying which there are.
    """
    data = (drive for drive in machine.drives if not drive.boot)
    bays = {f"bay{number}": drive for number, drive in enumerate(data)}
    chosen = bay or next(iter(bays), "data drive")
    if chosen not in bays:
        raise no_such_part(machine, chosen, tuple(bays))
    return chosen, bays[chosen]


def gpu_named(machine: Machine, name: str) -> Gpu:
    """The GPU of that name (`gpu5`); the first one where `name` is empty. Raises `UsageError` saying which exist."""
    gpus = {f"gpu{gpu.index}": gpu for gpu in machine.gpus}
    chosen = name or next(iter(gpus), "GPU")
    if chosen not in gpus:
        raise no_such_part(machine, chosen, tuple(gpus))
    return gpus[chosen]


def with_gpu(machine: Machine, changed: Gpu) -> Machine:
    """The machine with that GPU in the place of the one of its index."""
    return replace(machine, gpus=tuple(changed if gpu.index == changed.index else gpu for gpu in machine.gpus))
