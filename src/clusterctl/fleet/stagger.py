"""Not all machines of a rack at once: the inrush current of many trips the rack's feed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import chain, zip_longest
from typing import TypeVar

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Stagger:
    """At most `at_once` machines of a group are switched on within any `seconds`."""

    at_once: int
    seconds: float

    def wait(self, going: int, ended: Sequence[float], now: float) -> float | None:
        """Return the seconds until one more may be switched on; None where that depends on the `going` ones.

        `ended`: when the others were seen on, in any order, by the clock of `now`.
        """
        young = sorted(at for at in ended if now < at + self.seconds)
        excess = going + len(young) - self.at_once
        if excess < 0:
            return 0.0
        return young[excess] + self.seconds - now if excess < len(young) else None

    def shortest(self, machines: int) -> float:
        """Return the seconds that a group of `machines` takes at least, from the first to the last of them."""
        return max(0, machines - 1) // self.at_once * self.seconds


def interleaved(items: Iterable[T], group_of: Callable[[T], str]) -> tuple[T, ...]:
    """Return one of each group in turn: so that no group waits for another one's turns."""
    groups: dict[str, list[T]] = {}
    for item in items:
        groups.setdefault(group_of(item), []).append(item)
    rounds = zip_longest(*([(item,) for item in group] for group in groups.values()), fillvalue=())
    return tuple(item for one in rounds for item in chain.from_iterable(one))
