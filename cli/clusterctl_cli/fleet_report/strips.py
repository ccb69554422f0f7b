"""Small pictures in SVG coordinates: how a metric is spread, and a node's way through time. Pure."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from clusterctl.fleet.reporting.figures import ReportFigure
from clusterctl.operations.node_case import Moment

WIDTH, HEIGHT = 420.0, 56.0
_BINS = 42
_MARGIN = 0.04


@dataclass(frozen=True, slots=True)
class Bar:
    x: float
    width: float
    height: float
    description: str


@dataclass(frozen=True, slots=True)
class Strip:
    """Bars of how many values lie where; `bad` and `limit` are positions on the same axis."""

    bars: tuple[Bar, ...]
    bad: tuple[tuple[float, str], ...]
    limit: float | None
    median: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class _Axis:
    """The axis from `low` to `high` in `bins` bars; `whole`: of integers."""

    low: float
    high: float
    bins: int
    whole: bool

    @classmethod
    def of(cls, figure: ReportFigure) -> _Axis:
        """Return an axis with room at both ends. None begins below zero for what never is."""
        ends = [figure.lowest, figure.highest, *([figure.limit] if figure.limit is not None else [])]
        room = (max(ends) - min(ends)) * _MARGIN or abs(max(ends)) * _MARGIN or 1.0
        low, high = min(ends) - room, max(ends) + room
        if min(ends) >= 0:
            low = max(low, 0.0)
        if not all(float(value).is_integer() for value in (*ends, *(one.value for one in figure.values))):
            return cls(low, high, _BINS, whole=False)
        low, high = math.floor(low), math.ceil(high) + 1
        return cls(low, high, min(_BINS, int(high - low)), whole=True)

    def x(self, value: float) -> float:
        return (value - self.low) / (self.high - self.low) * WIDTH

    def bin_of(self, value: float) -> int:
        return min(self.bins - 1, int(self.x(value) / WIDTH * self.bins))

    def label(self, count: int, at: int) -> str:
        """Return what the bar `at` stands for."""
        unit = (self.high - self.low) / self.bins
        start = self.low + at * unit
        if not self.whole:
            return f"{count} near {start + unit / 2:.4g}"
        first, last = math.ceil(start), math.ceil(start + unit) - 1
        return f"{count} at {first}" if last <= first else f"{count} from {first} to {last}"


def strip(figure: ReportFigure) -> Strip:
    axis = _Axis.of(figure)
    counts = Counter(axis.bin_of(value.value) for value in figure.values)
    step, tallest = WIDTH / axis.bins, max(counts.values())
    bars = tuple(
        Bar(at * step, step, max(2.0, HEIGHT * count / tallest), axis.label(count, at))
        for at, count in sorted(counts.items())
    )
    bad = tuple(
        (axis.x(one.value), f"{one.node} {one.subject}: {one.value:g} {figure.unit}") for one in figure.bad[:200]
    )
    limit = axis.x(figure.limit) if figure.limit is not None else None
    return Strip(bars, bad, limit, axis.x(figure.median), axis.low, axis.high)


@dataclass(frozen=True, slots=True)
class Stretch:
    """A stretch of a time line, from one moment to the next: marked by what the first of them did."""

    x: float
    width: float
    mark: str
    description: str


def stretches(moments: Sequence[Moment], now: datetime) -> tuple[Stretch, ...]:
    """Return the stretches from the first moment to `now`; each at least as wide as can be seen."""
    if not moments:
        return ()
    whole = max((now - moments[0].at).total_seconds(), 1.0)
    ends = [*(moment.at for moment in moments[1:]), now]
    lengths = [max((end - one.at).total_seconds(), 0.0) for one, end in zip(moments, ends, strict=True)]
    widths = [3.0 + (WIDTH - 3.0 * len(moments)) * length / whole for length in lengths]
    starts = [sum(widths[:at]) for at in range(len(widths))]
    return tuple(
        Stretch(x, width, moment.mark, f"{moment.at:%Y-%m-%d %H:%M} {moment.text}")
        for x, width, moment in zip(starts, widths, moments, strict=True)
    )
