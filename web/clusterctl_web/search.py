"""Nodes by words: of their tiles, and of their parts, which the metrics keep for each node."""

from __future__ import annotations

from collections.abc import Sequence

from clusterctl.fleet.errors import UsageError
from clusterctl.operations.metrics import FleetMetrics
from clusterctl_web.live_fleet import LiveFleet

LONGEST_SEARCH = 200
"""Characters of what is searched for."""


def words_of(query: str) -> list[str]:
    """Return the words that are searched for, in lower case. Raise `UsageError` for none, or too long ones."""
    words = query.lower().split()
    if not 0 < sum(map(len, words)) <= LONGEST_SEARCH:
        raise UsageError(f"is not 1 to {LONGEST_SEARCH} characters", where="q", remedy="give a serial, or a part")
    return words


def found_nodes(live: LiveFleet, figures: FleetMetrics, words: Sequence[str]) -> list[str]:
    """Return the names of the nodes that have each word in their tile or in one of their parts, in the page's order."""
    parts = {node.name: node.parts for node in figures.figures()}
    tiles = (tile for rack in live.racks() for tile in rack.tiles)
    return [
        tile.name for tile in tiles if all(word in tile.search or word in parts.get(tile.name, "") for word in words)
    ]
