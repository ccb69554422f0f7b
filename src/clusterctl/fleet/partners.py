"""Partner nodes: proven nodes that a small batch is measured with, how many and which. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

ENOUGH = 4
"""A batch smaller than this is lent partners, as far as there are any."""
MOST = 2 * ENOUGH
"""So many partners at most are lent to one batch."""


def choose(available: Iterable[tuple[str, str]], needs: Mapping[str, int]) -> tuple[str, ...]:
    """Return the names of the first available nodes (name, SKU), of each SKU as many as it needs."""
    chosen: list[str] = []
    taken: Counter[str] = Counter()
    for name, sku in available:
        if taken[sku] < needs.get(sku, 0):
            taken[sku] += 1
            chosen.append(name)
    return tuple(chosen)
