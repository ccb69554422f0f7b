"""Adapters that say nothing of use about themselves (`MT4129 ConnectX7`, `localhost HCA-1`), known by their place."""

from __future__ import annotations

from collections.abc import Iterable
from collections.abc import Set as AbstractSet

from clusterctl.cabling.components import Component
from clusterctl.fleet.wiring import PortName


def placed(
    components: Iterable[Component], strangers: AbstractSet[PortName], absent: AbstractSet[PortName]
) -> dict[PortName, PortName]:
    """Cabled port of an unknown adapter → the planned port that it most likely is.

    A chain of differences that begins at a planned adapter of which nothing is seen and ends at an unknown one closes
    to a ring if they are the same: then the plugs in between have only changed places, or none has. `strangers` are the
    ports of unknown adapters, `absent` planned ports of adapters that are not seen.
    """
    paths = (c.ports for c in components if not c.cycle and len(c.missing) == len(c.extra))
    ends = ((ports[way], ports[~way]) for ports in paths for way in (0, -1))
    return {seen: planned for planned, seen in ends if planned in absent and seen in strangers}
