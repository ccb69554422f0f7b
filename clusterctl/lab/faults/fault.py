"""What a fault is, and how a person names one with its target."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from clusterctl.fleet.errors import UsageError
from clusterctl.lab.machine import Machine


@dataclass(frozen=True, slots=True)
class Fault:
    """One kind of fault.

    does    what it changes about the machine, for a person
    shows   where a tool that looks well enough finds it
    target  how the target is written on the command line
    apply   the broken machine; the second argument is the part, empty where the person named none. It raises
            `UsageError` for a part that the machine does not have (any more).
    """

    name: str
    does: str
    shows: str
    target: str
    apply: Callable[[Machine, str], Machine]


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
