"""A node's figures among its fleet's: only nodes of its SKU count, and the bad end is that of the limit."""

from __future__ import annotations

import pytest

from clusterctl.fleet.node import Stage
from clusterctl.fleet.quantity import Bound, at_least, at_most
from clusterctl.operations.figures import NodeFigures, bounds_text
from clusterctl.operations.node_figures import BINS, figure_places


def node(name: str, value: float, bound: Bound, sku: str = "h100") -> NodeFigures:
    worst = {("bandwidth", bound.unit): (value, bound)}
    return NodeFigures(
        name=name, serial=None, stage=Stage.GOLD, sku=sku, hold=None, stopped=None, acts=(), proven_at=None, worst=worst,
        bounds=bounds_text(worst), lines={},
    )  # fmt: skip


@pytest.mark.parametrize(("bound", "rank"), [(at_least(380, "Gb/s"), 1), (at_most(500, "Gb/s"), 100)])
def test_the_bad_end_is_that_of_the_limit(bound: Bound, rank: int) -> None:
    """The lowest of 100 nodes is first under a least value, and last under a most value."""
    fleet = [node(f"n{number}", 390 + number, bound) for number in range(100)]
    fleet += [node("other", 1, bound, sku="b200")]
    (place,) = figure_places("n0", fleet)
    assert (place.rank, place.nodes, place.own) == (rank, 100, 0)
    assert (place.median, place.low, place.high) == (439.5, pytest.approx(394.95), pytest.approx(484.05))
    assert place.bins == (5,) * BINS


def test_equal_values_and_a_node_alone() -> None:
    """A fleet without spread has all its nodes in one part, and each is in the first place."""
    bound = at_least(380, "Gb/s")
    (place,) = figure_places("n1", [node("n1", 400, bound), node("n2", 400, bound)])
    assert (place.rank, place.bins[place.own], sum(place.bins)) == (1, 2, 2)
    (alone,) = figure_places("n1", [node("n1", 400, bound)])
    assert (alone.nodes, alone.low, alone.high) == (1, 400, 400)
    assert figure_places("n9", [node("n1", 400, bound)]) == ()
