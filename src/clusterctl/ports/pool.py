"""The gold pool, for those who schedule on it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Protocol


class Pool(Protocol):
    """Publishes who is gold to those who schedule on it."""

    def publish(self, gold: Mapping[str, str]) -> None:
        """Replace the published pool: node name → address. Whole or not at all."""
        ...

    def lacks(self, names: Iterable[str]) -> frozenset[str]:
        """Those of `names` that are certainly not in the published pool."""
        ...
