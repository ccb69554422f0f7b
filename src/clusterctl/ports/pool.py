"""The gold pool, for schedulers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Protocol


class Pool(Protocol):
    """Publishes the gold nodes to a scheduler."""

    def publish(self, gold: Mapping[str, str]) -> None:
        """Replace the published pool: node name → address. Whole or not at all."""
        ...

    def lacks(self, names: Iterable[str]) -> frozenset[str]:
        """Return those of `names` that are certainly not in the published pool."""
        ...
