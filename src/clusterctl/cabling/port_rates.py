"""What passed each port between two readings, by direction, and what its error counters gathered."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from clusterctl.cabling.health_wording import Places
from clusterctl.cabling.intervals import throughput_gbps
from clusterctl.cabling.symptoms import Window, errors_added
from clusterctl.fleet.fabric import Fabric
from clusterctl.fleet.wiring import PortName


@dataclass(frozen=True, slots=True)
class PortRate:
    """Mean rates over the interval, None where they were not read twice; `errors` per second, those that grew.

    `gbps` is what the link could carry in each direction.
    """

    port: PortName
    gbps: float
    sent_gbps: float | None
    received_gbps: float | None
    errors: Mapping[str, float]


def port_rates(fabric: Fabric, window: Window, places: Places) -> Iterator[PortRate]:
    """Of both ends of every cable."""
    for link in fabric.cables():
        for port in places.ordered(link):
            sent, received = throughput_gbps(window.growth(port), window.seconds)
            errors = {name: count / window.seconds for name, count in errors_added(window, port)}
            yield PortRate(places.name(port), link.gbps, sent, received, errors)
