"""Names are sorted as people count."""

from __future__ import annotations

import pytest

from clusterctl.fleet.natural_order import natural_key


@pytest.mark.parametrize(
    "names",
    [
        ["leaf", "leaf-1", "leaf-2", "leaf-10", "leaf-10-a", "leaf-10-b"],
        ["A1", "A01-b", "A2", "A10", "B1"],
        ["", "a", "10"],
        ["rack ²", "rack ٣"],
        [f"1{'0' * 4999}", f"2{'0' * 4999}", f"1{'0' * 5000}"],
    ],
)
def test_the_order_of_names(names: list[str]) -> None:
    """Numbers by their value, also such as are too long for an integer; digits of other scripts are text."""
    backwards = names[::-1]
    assert sorted(backwards, key=natural_key) == names
