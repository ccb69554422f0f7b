"""Whether the gold pool has the nodes that the work needs, and spares in addition. Pure."""

from __future__ import annotations

import math
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Spares:
    """`gold` nodes, of which the work needs `needed` at a time, and `percent` of these shall stand by."""

    gold: int
    needed: int
    percent: int

    @property
    def wanted(self) -> int:
        return math.ceil(self.needed * self.percent / 100)

    @property
    def missing(self) -> int:
        """So many nodes lacks the pool; 0 where it has all."""
        return max(0, self.needed + self.wanted - self.gold)

    def __str__(self) -> str:
        there = max(0, self.gold - self.needed)
        asked = f"{self.needed} needed, {self.wanted} spares asked for ({self.percent} %)"
        lack = f": {self.missing} missing" if self.missing else ""
        return f"{self.gold} gold, {asked}, {there} there{lack}"
