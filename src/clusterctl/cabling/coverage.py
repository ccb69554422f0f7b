"""What a burn really loaded: each direction of each cable, from port counters read before and after.

Under adaptive routing switches choose among ports by themselves, so that tables do not tell which links a flow takes;
the counters do.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from clusterctl.cabling.intervals import throughput_gbps
from clusterctl.cabling.symptoms import Window
from clusterctl.fleet.fabric import Fabric, Link, PortId


@dataclass(frozen=True, slots=True)
class Load:
    """One direction of a cable. `share`: its mean rate over the interval in % of the link's nominal one; None where
    neither end was read twice, or counted without a break.
    """

    source: PortId
    target: PortId
    gbps: float
    share: float | None


def coverage_from_counters(fabric: Fabric, window: Window) -> tuple[Load, ...]:
    """Both directions of every cable, one after the other."""
    return tuple(load for link in fabric.cables() for load in _both(link, window))


def _both(link: Link, window: Window) -> Iterator[Load]:
    """What one end sends the other receives: the sender's counter is taken, the receiver's where that was not read."""
    rates = {port: throughput_gbps(window.growth(port), window.seconds) for port in (link.a, link.b)}
    for source, target in ((link.a, link.b), (link.b, link.a)):
        sent, received = rates[source][0], rates[target][1]
        known = sent if sent is not None else received
        yield Load(source, target, link.gbps, None if known is None else 100 * known / link.gbps)
