"""Error counters over time: what was added between one reading and the next, link by link."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import pairwise

from clusterctl.cabling.health.counters import growth
from clusterctl.cabling.health.findings import FabricLabels
from clusterctl.cabling.health.symptoms import JUDGED, span
from clusterctl.fleet.fabric.telemetry import HIGHEST, Telemetry
from clusterctl.fleet.fabric.topology import Link, PortId

MOST_LINKS = 24
BAR_WIDTH, BAR_HEIGHT = 220, 40


@dataclass(frozen=True, slots=True)
class TimelineBar:
    """One interval: `x` and `width` are its share of the time, `height` of the highest bar of the same link; `doubtful`
    where the counters were cleared, stopped, or not read.
    """

    x: float
    width: float
    height: float
    count: int
    doubtful: bool
    description: str


@dataclass(frozen=True, slots=True)
class ErrorSeries:
    """All errors of one link, both ends; `counters` names the counters."""

    link: str
    counters: str
    total: int
    bars: tuple[TimelineBar, ...]


@dataclass(frozen=True, slots=True)
class Timeline:
    """The links with the most errors, the worst first; `quiet` of `links` links added none."""

    series: tuple[ErrorSeries, ...]
    links: int
    quiet: int
    unread: int
    seconds: float
    since: datetime | None


def timeline(
    links: Sequence[Link], readings: Sequence[Telemetry], moments: Sequence[float], places: FabricLabels
) -> Timeline:
    """Return the time line. `moments`: when each reading was taken, in seconds since the first."""
    ranked = []
    quiet = unread = 0
    for link in links:
        counts = _added(link, readings)
        total = sum(count for count, _ in counts)
        if total:
            ranked.append((total, link, counts))
        elif any(doubt for _, doubt in counts):
            unread += 1
        else:
            quiet += 1
    ranked.sort(key=lambda entry: (-entry[0], places.ordered(entry[1])))
    series = tuple(
        ErrorSeries(_name(link, places), _which(link, readings, places), total, _bars(counts, moments))
        for total, link, counts in ranked[:MOST_LINKS]
    )
    return Timeline(series, len(links), quiet, unread, moments[-1], readings[0].at)


def _added(link: Link, readings: Sequence[Telemetry]) -> list[tuple[int, bool]]:
    """Return for each interval the errors of both ends, and whether that may not be all."""
    found = []
    for first, last in pairwise(readings):
        grown = [growth(first.counters.get(port), last.counters.get(port)) for port in (link.a, link.b)]
        count = sum(one.of(counter) for one in grown for counter in HIGHEST)
        found.append((count, any(counter in one.doubts for one in grown for counter in JUDGED)))
    return found


def _which(link: Link, readings: Sequence[Telemetry], places: FabricLabels) -> str:
    return "; ".join(filter(None, (_of_port(port, readings, places) for port in places.ordered(link))))


def _of_port(port: PortId, readings: Sequence[Telemetry], places: FabricLabels) -> str:
    pairs = list(pairwise(readings))
    sums = {
        counter: sum(growth(a.counters.get(port), b.counters.get(port)).of(counter) for a, b in pairs)
        for counter in HIGHEST
    }
    increases = ", ".join(f"{counter} +{count}" for counter, count in sums.items() if count)
    return f"{places.plain(port)}: {increases}" if increases else ""


def _name(link: Link, places: FabricLabels) -> str:
    first, second = places.ordered(link)
    return f"{places.port(first)} – {places.port(second)}"


def _bars(counts: Iterable[tuple[int, bool]], moments: Sequence[float]) -> tuple[TimelineBar, ...]:
    increases = list(counts)
    most, whole = max(count for count, _ in increases), moments[-1]
    return tuple(
        TimelineBar(
            x=BAR_WIDTH * start / whole,
            width=BAR_WIDTH * (end - start) / whole,
            height=BAR_HEIGHT * count / most,
            count=count,
            doubtful=doubt,
            description=f"{span(start)} to {span(end)}: {count} errors" + (", perhaps more" if doubt else ""),
        )
        for (count, doubt), (start, end) in zip(increases, pairwise(moments), strict=True)
    )
