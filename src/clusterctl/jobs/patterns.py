"""How a job is slow: patterns in the throughput of its single steps, and where to look for each.

The series is never smoothed before dips are looked for: a mean over a minute hides what a step shows. Values are
throughput as a share of what is expected, 1.0 for as fast as expected. Several patterns may hold at once.
"""

from __future__ import annotations

import enum
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from clusterctl.fleet.blame import Layer

FEWEST = 30
"""Steps without which no pattern is named."""
MOST = 200_000
"""Steps that are looked at: the last ones."""
_WINDOW, _SHARED = 15, 8
_DIP = 0.5
"""A step below this share of its neighbourhood's median is a dip."""
_PERIODIC, _REGULAR = 0.15, 0.75
"""Dips are periodic where this share of their intervals differs by at most so much from the median."""
_DROP = (0.4, 0.88)
"""Level after a sudden drop, as a share of that before."""
_DECAY = 0.07
_NOISE = 0.04
_LOWEST, _LOW, _REDUCED = 0.10, 0.45, 0.85


class Pattern(enum.Enum):
    """Patterns, named as the JSON output names them."""

    TOO_FEW = "too_few_steps"
    HEALTHY = "healthy"
    PERIODIC_DIPS = "periodic_dips"
    RANDOM_DIPS = "random_dips"
    SUDDEN_DROP = "sudden_drop"
    SLOW_DECAY = "slow_decay"
    STEADY_LOWEST = "steady_below_10"
    STEADY_LOW = "steady_10_to_45"
    STEADY_REDUCED = "steady_45_to_85"
    NOISY = "noisy"


@dataclass(frozen=True, slots=True, kw_only=True)
class PatternMeaning:
    """What a pattern has as its usual cause. `alarm`: an operator must act on it."""

    layer: Layer
    alarm: bool
    cause: str
    look: str


MEANINGS = {
    Pattern.TOO_FEW: PatternMeaning(
        layer=Layer.UNKNOWN, alarm=False, cause=f"fewer than {FEWEST} steps", look="wait for more steps"
    ),
    Pattern.HEALTHY: PatternMeaning(
        layer=Layer.UNKNOWN, alarm=False, cause="as fast as expected, and steady", look="nothing is to be done"
    ),
    Pattern.PERIODIC_DIPS: PatternMeaning(
        layer=Layer.APPLICATION,
        alarm=False,
        cause="checkpoints or evaluations",
        look="compare the interval with those of the job; if they take long, look at the storage's write rate",
    ),
    Pattern.RANDOM_DIPS: PatternMeaning(
        layer=Layer.SYSTEM_SOFTWARE,
        alarm=True,
        cause="other programs use the processors of a host now and then",
        look="find the host by the step times of its ranks; check cpu_foreign_load, timers and cron jobs there",
    ),
    Pattern.SUDDEN_DROP: PatternMeaning(
        layer=Layer.HARDWARE,
        alarm=True,
        cause="a GPU was throttled: clock, heat or power supply; or a link lost lanes",
        look="compare clocks, temperatures and power of all GPUs since that step; PSUs in the BMC; link widths",
    ),
    Pattern.SLOW_DECAY: PatternMeaning(
        layer=Layer.APPLICATION,
        alarm=True,
        cause="garbage collection, or a structure that grows with each step; a restart cures it for a while",
        look="collect garbage at fixed steps (gc.disable, gc.collect); look at the memory of the processes",
    ),
    Pattern.STEADY_LOWEST: PatternMeaning(
        layer=Layer.FABRIC,
        alarm=True,
        cause="upper tiers of the fabric are down, or PCIe links have too few lanes",
        look="run cable verify and cable health; check pcie_width on all hosts of the job",
    ),
    Pattern.STEADY_LOW: PatternMeaning(
        layer=Layer.SYSTEM_SOFTWARE,
        alarm=True,
        cause="GPUDirect RDMA is off: data goes through host memory",
        look="check gpudirect_rdma and pcie_chain on all hosts; look for GDRDMA in the log of NCCL",
    ),
    Pattern.STEADY_REDUCED: PatternMeaning(
        layer=Layer.FABRIC,
        alarm=True,
        cause="links with errors, or processors that are throttled",
        look="run cable health; check cpu_frequency and temperatures of all hosts",
    ),
    Pattern.NOISY: PatternMeaning(
        layer=Layer.FABRIC,
        alarm=True,
        cause="links between switches with errors or congestion",
        look="run cable health for the links between switches; look for jobs that share them",
    ),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundPattern:
    """A pattern, the index of the step at which it begins, and its figures."""

    pattern: Pattern
    begins: int = 0
    figures: str = ""

    @property
    def meaning(self) -> PatternMeaning:
        return MEANINGS[self.pattern]


def classify(throughput: Sequence[float], *, against_expected: bool) -> tuple[FoundPattern, ...]:
    """Return the patterns of a series, those that raise an alarm first.

    `against_expected`: the values are shares of a known expectation; without one, steady levels cannot be judged.
    """
    values = list(throughput)[-MOST:]
    if len(values) < FEWEST:
        return (FoundPattern(pattern=Pattern.TOO_FEW, figures=f"{len(values)} steps"),)
    local = _local_medians(values)
    dips = [at for at, value in enumerate(values) if value < _DIP * local[at]]
    between = [value for value, middle in zip(values, local, strict=True) if value >= _DIP * middle]
    found = [*_dip_patterns(dips, values, local), *_trend(between)]
    if not any(one.pattern in (Pattern.SUDDEN_DROP, Pattern.SLOW_DECAY) for one in found):
        found += _level(between, judged=against_expected)
    return tuple(sorted(found, key=lambda one: not one.meaning.alarm)) or (FoundPattern(pattern=Pattern.HEALTHY),)


def _local_medians(values: Sequence[float]) -> list[float]:
    """Return the median of the neighbourhood of each value; neighbours share one, so that long series are fast."""
    medians: list[float] = []
    for at in range(0, len(values), _SHARED):
        middle = statistics.median(values[max(0, at - _WINDOW) : at + _SHARED + _WINDOW])
        medians += [middle] * min(_SHARED, len(values) - at)
    return medians


def _dip_patterns(dips: Sequence[int], values: Sequence[float], local: Sequence[float]) -> list[FoundPattern]:
    starts = [at for number, at in enumerate(dips) if number == 0 or at - dips[number - 1] > 1]
    if len(starts) < 4:
        return []
    intervals = [after - before for before, after in pairwise(starts)]
    middle = statistics.median(intervals)
    near = [interval for interval in intervals if abs(interval - middle) <= max(1.0, _PERIODIC * middle)]
    depth = statistics.median(values[at] / local[at] for at in dips)
    regular = len(near) >= _REGULAR * len(intervals)
    figures = f"{len(starts)} dips to {depth:.0%}, {middle:g} steps apart in the median"
    pattern = Pattern.PERIODIC_DIPS if regular else Pattern.RANDOM_DIPS
    return [FoundPattern(pattern=pattern, begins=starts[0], figures=figures)]


def _trend(values: Sequence[float]) -> list[FoundPattern]:
    """Return a sudden drop or a slow decay, whichever describes the values better."""
    at, step_error, before, after = _split(values)
    slope, line_error = _line(values)
    whole = len(values) * slope
    middle = statistics.median(values)
    ratio = after / before if before > 0 else 1.0
    if _DROP[0] <= ratio <= _DROP[1] and step_error <= line_error:
        figures = f"from {before:.0%} to {after:.0%} of what is expected at step {at} of the series"
        return [FoundPattern(pattern=Pattern.SUDDEN_DROP, begins=at, figures=figures)]
    if middle > 0 and -whole / middle >= _DECAY and line_error < step_error and _falls(values):
        figures = f"{-whole / middle:.0%} slower at the end of {len(values)} steps"
        return [FoundPattern(pattern=Pattern.SLOW_DECAY, figures=figures)]
    return []


def _split(values: Sequence[float]) -> tuple[int, float, float, float]:
    """Return the best place to divide the values in two levels: place, squared error, level before and after."""
    total, count, squares = sum(values), len(values), sum(value * value for value in values)
    best, left = (0, float("inf"), 0.0, 0.0), 0.0
    edge = max(5, count // 20)
    for at in range(1, count):
        left += values[at - 1]
        if edge <= at <= count - edge:
            before, after = left / at, (total - left) / (count - at)
            error = squares - at * before * before - (count - at) * after * after
            if error < best[1]:
                best = at, error, before, after
    return best


def _line(values: Sequence[float]) -> tuple[float, float]:
    """Return slope and squared error of the straight line through the values."""
    slope, start = statistics.linear_regression(range(len(values)), values)
    return slope, sum((value - start - slope * at) ** 2 for at, value in enumerate(values))


def _falls(values: Sequence[float]) -> bool:
    """Return True where each quarter of the values is lower than the one before."""
    quarter = len(values) // 4
    levels = [statistics.median(values[number * quarter : (number + 1) * quarter]) for number in range(4)]
    return all(after < before for before, after in pairwise(levels))


def _level(values: Sequence[float], *, judged: bool) -> list[FoundPattern]:
    """Return the steady level, against the expectation, or the noise about it."""
    middle = statistics.median(values)
    cut = statistics.quantiles(values, n=20)
    spread = (cut[-1] - cut[0]) / middle if middle > 0 else 0.0
    figures = f"{middle:.0%} of what is expected" if judged else f"varies by {spread:.0%}"
    if judged and middle < _REDUCED:
        lowest, low = middle < _LOWEST, middle < _LOW
        pattern = Pattern.STEADY_LOWEST if lowest else Pattern.STEADY_LOW if low else Pattern.STEADY_REDUCED
        return [FoundPattern(pattern=pattern, figures=figures)]
    if spread >= _NOISE:
        return [FoundPattern(pattern=Pattern.NOISY, figures=f"varies by {spread:.0%} about {middle:.0%}")]
    return []
