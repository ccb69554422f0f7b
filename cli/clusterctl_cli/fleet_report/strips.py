"""Small pictures in SVG coordinates: how a metric is spread, and a node's way through time. Pure."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from clusterctl.fleet.reporting.figures import Figure
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


def strip(figure: Figure) -> Strip:
    bound = figure.limit
    ends = [figure.lowest, figure.highest, *([bound] if bound is not None else [])]
    room = (max(ends) - min(ends)) * _MARGIN or abs(max(ends)) * _MARGIN or 1.0
    low, high = min(ends) - room, max(ends) + room
    whole = all(float(value).is_integer() for value in (*ends, *(one.value for one in figure.values)))
    if whole:  # counts: an axis of integers, one bar for each where they have room
        low, high = math.floor(low), math.ceil(high) + 1
    low = max(low, 0.0) if min(ends) >= 0 else low  # no axis begins below zero for what never is
    bins = min(_BINS, int(high - low)) if whole else _BINS

    def x(value: float) -> float:
        return (value - low) / (high - low) * WIDTH

    counts = [0] * bins
    for value in figure.values:
        counts[min(bins - 1, int(x(value.value) / WIDTH * bins))] += 1
    step, tallest = WIDTH / bins, max(counts)
    unit = (high - low) / bins
    bars = tuple(
        Bar(at * step, step, max(2.0, HEIGHT * count / tallest), _label(count, low + at * unit, unit, whole))
        for at, count in enumerate(counts)
        if count
    )
    bad = tuple((x(one.value), f"{one.node} {one.subject}: {one.value:g} {figure.unit}") for one in figure.bad[:200])
    return Strip(bars, bad, x(bound) if bound is not None else None, x(figure.median), low, high)


def _label(count: int, start: float, unit: float, whole: bool) -> str:
    """Return what a bar stands for; `unit` is its width."""
    if whole:
        first, last = math.ceil(start), math.ceil(start + unit) - 1
        return f"{count} at {first}" if last <= first else f"{count} from {first} to {last}"
    return f"{count} near {start + unit / 2:.4g}"


@dataclass(frozen=True, slots=True)
class Stretch:
    """A stretch of a time line, from one moment to the next: marked by what the first of them did."""

    x: float
    width: float
    mark: str
    description: str


def stretches(moments: Sequence[Moment], now: datetime) -> tuple[Stretch, ...]:
    """Over the time from the first moment to `now`; each at least as wide as can be seen."""
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
