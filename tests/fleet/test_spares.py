"""Spares: what the work needs, and a share of it in addition."""

from __future__ import annotations

import pytest

from clusterctl.fleet.reporting.spares import Spares


@pytest.mark.parametrize(
    ("gold", "needed", "percent", "missing"),
    [(72, 64, 10, 0), (71, 64, 10, 0), (70, 64, 10, 1), (10, 64, 10, 61), (1, 1, 0, 0)],
)
def test_what_is_missing(gold: int, needed: int, percent: int, missing: int) -> None:
    """Seven spares for 64: a part of a node is a node."""
    assert Spares(gold, needed, percent).missing == missing


def test_the_message_has_the_figures() -> None:
    """What is there, what was asked for, what is missing."""
    assert str(Spares(66, 64, 10)) == "66 gold, 64 needed, 7 spares asked for (10 %), 2 there: 5 missing"
