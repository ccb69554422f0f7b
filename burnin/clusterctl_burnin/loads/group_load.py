"""A load over several nodes: one file of `loads/` each, with a constant `LOAD`, entered in `groups.py`.

It is led by a hunt: which nodes run it together is not the load's business.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from clusterctl_burnin.limits.limit import LimitKey, Limits
from clusterctl_burnin.limits.methods import GroupMethod
from clusterctl_burnin.loads.model import Answer, Participant, Round, Trial, TrialOutcome, Tried

Method = TypeVar("Method", bound=GroupMethod)


@dataclass(frozen=True, slots=True)
class Lasts:
    """How long a suite runs its loads; None: as the limits file sets it."""

    pair_seconds: int | None = None
    group_iterations: int | None = None
    hang_seconds: int | None = None

    def stretched(self, method: Method) -> Method:
        """Return the method with the suite's iterations, and with more time in proportion."""
        wanted = self.group_iterations
        if wanted is None:
            return method
        times = max(1, -(-wanted // method.iterations))
        return replace(method, iterations=wanted, timeout_seconds=times * method.timeout_seconds)


@dataclass(frozen=True, slots=True)
class GroupSizes:
    """How many nodes a group has at least, where there are enough, and for many pairs of nodes at once (0: none)."""

    least: int
    most: int
    widest: int = 0


SizesOf = Callable[[Limits], GroupSizes]
JobOf = Callable[[tuple[Participant, ...], Limits, Lasts, str], Round]
"""What the members run, as which user."""
Read = Callable[[Round, Mapping[str, Answer], Limits], Tried]


@dataclass(frozen=True, slots=True)
class GroupLoad:
    """`limit`: None where it judges by no figure. `remedy`: for a node that fails with all partners. `in_pairs`: of
    two nodes, in the suite's `pair_rounds`; else in `group_rounds`.

    `by_rail`: it measures each device by itself. A node is unmeasured on a device that its partners lack.
    A node with a fault of a part that it needs takes part in none: it would spoil the results of its partners.
    """

    name: str
    limit: LimitKey | None
    remedy: str
    sizes: SizesOf
    job: JobOf
    read: Read
    by_rail: bool = False
    in_pairs: bool = False

    @property
    def limits(self) -> tuple[LimitKey, ...]:
        """The limits that it judges by."""
        return (self.limit,) if self.limit else ()


def not_led(load: str, names: Sequence[str], why: str) -> Tried:
    """Return a trial without results: `names[0]`, which led it, failed; nothing is known of any node."""
    detail = f"{names[0]}, which led the group: {why}"
    return Tried((Trial(load, tuple(names), TrialOutcome.UNMEASURED, {}, detail=detail),), ())
