"""The growth of counters over many readings, so that a link's error rate is known over days.

Between two readings a counter may be cleared or reach its maximum; the growth of each interval is added, and what is
doubtful in one interval stays doubtful in the sum.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from itertools import pairwise
from typing import TypeVar

from clusterctl.cabling.health.counters import Doubt, Growth, growth
from clusterctl.cabling.health.symptoms import HealthWindow
from clusterctl.fleet.fabric.limits import FabricLimits
from clusterctl.fleet.fabric.telemetry import Telemetry, Transceiver
from clusterctl.fleet.fabric.topology import PortId

T = TypeVar("T")
MOST = 24
"""So many readings of a longer history are enough: between two of them a counter that was cleared is still seen."""


def window_over(
    readings: Sequence[Telemetry], limits: FabricLimits, modules: Mapping[PortId, Transceiver]
) -> HealthWindow | None:
    """Return the window from the first to the last of the readings by their times; None for fewer than two."""
    timed = sorted(((one.at, one) for one in readings if one.at is not None), key=lambda pair: pair[0])
    chosen = thinned([one for _, one in timed])
    seconds = (timed[-1][0] - timed[0][0]).total_seconds() if timed else 0.0
    if seconds <= 0:
        return None
    ports = {port for one in chosen for port in one.counters}
    grown = {
        port: total(growth(a.counters.get(port), b.counters.get(port)) for a, b in pairwise(chosen)) for port in ports
    }
    return HealthWindow(chosen[0], chosen[-1], seconds, limits, modules, grown)


def after_repairs(
    window: HealthWindow, readings: Sequence[Telemetry], since: Mapping[PortId, datetime]
) -> HealthWindow:
    """Return the window in which the counters of these ports count from their times on: errors of a link before its
    repair prove nothing of it. A port without two readings since then is not measured.
    """
    timed = sorted(((one.at, one) for one in readings if one.at is not None), key=lambda pair: pair[0])
    fresh: dict[PortId, Growth] = {}
    for port, at in since.items():
        if timed and at > timed[0][0]:
            fresh[port] = _growth(port, [one for taken, one in timed if taken >= at])
    return replace(window, grown={**window.grown, **fresh}) if fresh else window


def total(parts: Iterable[Growth]) -> Growth:
    """Return the sum of the growths of intervals; a doubt of any interval is one of the sum."""
    counts: Counter[str] = Counter()
    doubts: dict[str, Doubt] = {}
    for part in parts:
        counts.update(part.counts)
        doubts |= {counter: doubt for counter, doubt in part.doubts.items() if doubts.get(counter) is not Doubt.STOPPED}
    return Growth(dict(counts), doubts)


def thinned(readings: Sequence[T], most: int = MOST) -> list[T]:
    """Return at most `most` of the readings: the first, the last, and some between them, evenly."""
    if len(readings) <= most:
        return list(readings)
    step = (len(readings) - 1) / (most - 1)
    return [readings[round(number * step)] for number in range(most)]


def _growth(port: PortId, readings: Sequence[Telemetry]) -> Growth:
    """Return what the counters of a port grew by over the readings; with less than two, what is not measured."""
    pairs = list(pairwise(readings)) or [(Telemetry(), Telemetry())]
    return total(growth(a.counters.get(port), b.counters.get(port)) for a, b in pairs)
