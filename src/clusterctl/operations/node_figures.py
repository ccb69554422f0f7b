"""A node's figures against those of all nodes of its SKU."""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from clusterctl.fleet.quantity import Bound
from clusterctl.operations.figures import NodeFigures
from clusterctl.operations.metrics import margin

BINS = 20
_TWENTIETHS = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class FigurePlace:
    """Where the worst figure of one check of a node stands among its SKU's.

    nodes         how many nodes have this figure, this one included
    low, high     5 % of the nodes are below `low`, 5 % above `high`
    rank          1: no other node is nearer to the limit, or farther beyond it
    bins, own     how many nodes have a figure in each part of the range, and in which part this node's is
    """

    check: str
    unit: str
    value: float
    bound: Bound
    nodes: int
    median: float
    low: float
    high: float
    rank: int
    bins: tuple[int, ...]
    own: int


def figure_places(node: str, fleet: Sequence[NodeFigures]) -> tuple[FigurePlace, ...]:
    """Return a place for each figure of the node, those nearest to the bad end of their fleet first.

    The node is one of `fleet`; of others only those of its SKU count.
    """
    mine = next((one for one in fleet if one.name == node), None)
    if mine is None:
        return ()
    same = [one for one in fleet if one.sku == mine.sku]
    return tuple(sorted(_places(mine, same), key=lambda place: (place.rank / place.nodes, place.check, place.unit)))


def _places(mine: NodeFigures, same: Sequence[NodeFigures]) -> Iterator[FigurePlace]:
    for key, (value, bound) in mine.worst.items():
        values = sorted(one.worst[key][0] for one in same if key in one.worst)
        cuts = statistics.quantiles(values, n=_TWENTIETHS, method="inclusive") if len(values) > 1 else [value]
        yield FigurePlace(
            check=key[0],
            unit=key[1],
            value=value,
            bound=bound,
            nodes=len(values),
            median=statistics.median(values),
            low=cuts[0],
            high=cuts[-1],
            rank=1 + sum(margin(other, bound) < margin(value, bound) for other in values),
            bins=_bins(values),
            own=_bin(value, values[0], values[-1]),
        )


def _bins(values: Sequence[float]) -> tuple[int, ...]:
    counts = [0] * BINS
    for value in values:
        counts[_bin(value, values[0], values[-1])] += 1
    return tuple(counts)


def _bin(value: float, least: float, most: float) -> int:
    """Return the part of the range that a value lies in; the middle one where all values are the same."""
    if most == least:
        return BINS // 2
    return min(BINS - 1, int((value - least) / (most - least) * BINS))
