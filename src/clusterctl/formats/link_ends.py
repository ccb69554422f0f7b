"""Links as both of their ends tell them: a link is one only where each end names the other."""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping
from dataclasses import dataclass

from clusterctl.fleet.errors import ParseError
from clusterctl.fleet.fabric import LANE_GBPS, Link, PortId
from clusterctl.fleet.node import Guid


@dataclass(frozen=True, slots=True)
class LinkEnd:
    """What one end says of its link: the far end, `width` in lanes, `speed` one of `LANE_GBPS`, and the line of it."""

    peer: PortId
    width: int
    speed: str
    line: int


def joined(
    ends: Mapping[PortId, LinkEnd], devices: Container[Guid], error: Callable[[int, str], ParseError]
) -> tuple[Link, ...]:
    """Each link once, at its slower end's rate. Raises what `error` makes of a line and a message.

    An end that is missing means that the text was cut off: never a smaller fabric.
    """
    links = []
    for port, seen in ends.items():
        if seen.peer.guid not in devices:
            raise error(seen.line, f"the far end {seen.peer.guid} is not described: output cut off")
        other = ends.get(seen.peer)
        if other is None or other.peer != port or seen.peer == port:
            raise error(seen.line, f"{seen.peer.guid} port {seen.peer.number} does not confirm this link")
        if port < seen.peer:
            slower = min(seen, other, key=lambda end: end.width * LANE_GBPS[end.speed])
            links.append(Link(port, seen.peer, slower.width, slower.speed))
    return tuple(links)
