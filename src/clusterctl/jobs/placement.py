"""Which nodes a job gets: the healthiest, close together; healthy ones are left free as spares.

Nodes are compared by trouble first: how often jobs blame them, how often they were quarantined in the last 28 days, and
whether their last report has warnings; then by the figure of their pairs in the last burn-in. Among nodes that are
equally healthy those under one leaf switch are taken together.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from clusterctl.fleet.natural_order import natural_key

SLOW_PAIR = 0.95
"""A node whose pairs reach less than this share of the fleet's median is slower than the others."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlacementFacts:
    """What is known of a free node.

    blamed, offences  jobs that blame it, and quarantines, in the last 28 days
    warnings          findings of its last reports that warn
    pairs             figure of its pairs as a share of the fleet's median; None where not measured
    leaf              its leaf switch; empty where unknown
    """

    name: str
    blamed: int = 0
    offences: int = 0
    warnings: int = 0
    pairs: float | None = None
    leaf: str = ""

    @property
    def trouble(self) -> tuple[int, int, int, bool]:
        """Return a sort key: the healthiest first."""
        slow = self.pairs is not None and self.pairs < SLOW_PAIR
        return (self.blamed, self.offences, self.warnings, slow)

    @property
    def reasons(self) -> str:
        """Return the reasons against it, as text; empty where there are none."""
        parts = [
            f"blamed by {self.blamed} jobs" if self.blamed else "",
            f"{self.offences} quarantines" if self.offences else "",
            f"{self.warnings} warnings" if self.warnings else "",
            f"pairs at {self.pairs:.0%} of the median" if self.pairs is not None and self.pairs < SLOW_PAIR else "",
        ]
        return ", ".join(part for part in parts if part)


@dataclass(frozen=True, slots=True)
class JobPlacement:
    """The chosen nodes in the order of their ranks, spares that stay free, and the rest."""

    chosen: tuple[PlacementFacts, ...]
    spares: tuple[PlacementFacts, ...]
    rest: tuple[PlacementFacts, ...]


def place(free: Sequence[PlacementFacts], nodes: int, spares: int) -> JobPlacement | None:
    """Return the placement of `nodes` nodes; None where not even they are free. Missing spares are no obstacle."""
    if len(free) < nodes:
        return None
    ranked = _ranked(free)
    chosen = sorted(ranked[:nodes], key=lambda one: (natural_key(one.leaf), natural_key(one.name)))
    return JobPlacement(tuple(chosen), tuple(ranked[nodes : nodes + spares]), tuple(ranked[nodes + spares :]))


def _ranked(free: Sequence[PlacementFacts]) -> list[PlacementFacts]:
    """Return the nodes, healthiest first; of equal ones those of the leaf with the most of them."""
    crowd = Counter((one.trouble, one.leaf) for one in free)
    return sorted(
        free,
        key=lambda one: (
            one.trouble,
            -crowd[one.trouble, one.leaf] if one.leaf else 0,
            natural_key(one.leaf),
            natural_key(one.name),
        ),
    )
