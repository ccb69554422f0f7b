"""The downtime of supervised runs, each term from the times of their events (docs/reference/downtime.md).

Per attempt: L launched, P first step, E last step, C last durable checkpoint, D detected, S stopped. The wall clock
from the first L to the last S is start-up, steps, detection and shutdown of each attempt, and the waits between them.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime

from clusterctl.fleet.blame import Layer
from clusterctl.fleet.payloads.jobs import JobAttemptEnded
from clusterctl.jobs.supervision import COMPLETED, SupervisedRun

OF_HARDWARE = frozenset({Layer.HARDWARE, Layer.FABRIC})
DAY_S = 86_400.0
_NEVER = 10.0
"""So many standard deviations below its mean a number of failures does not occur: their probability is below 1e-20."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptTime:
    """Seconds of one attempt.

    startup     L to P; of an attempt without a step, L to D
    useful      of its steps, without what was lost and without blocking saves
    saving      blocking saves
    lost        steps after the last durable checkpoint of an attempt that failed
    detection   E to D; shutdown: D to S
    wait        from S to L of the attempt after it; 0 for the last
    """

    job: str
    failed: bool
    hardware: bool
    startup: float
    useful: float
    saving: float
    lost: float
    detection: float
    shutdown: float
    wait: float = 0.0

    @property
    def total(self) -> float:
        """Return the seconds of the attempt, and of the wait after it."""
        return self.startup + self.useful + self.saving + self.lost + self.detection + self.shutdown + self.wait


@dataclass(frozen=True, slots=True, kw_only=True)
class RunTime:
    """A run's attempts of which the times are known; `unknown`: jobs of which they are not.

    gpus  of its first attempt; nodes where no GPU is known
    """

    run: str
    nodes: int
    gpus: int
    attempts: tuple[AttemptTime, ...]
    unknown: tuple[str, ...] = ()
    saves: int = 0

    @property
    def jobs(self) -> int:
        """Return the number of attempts, those of unknown times included."""
        return len(self.attempts) + len(self.unknown)

    @property
    def elapsed(self) -> float:
        return sum(one.total for one in self.attempts)

    @property
    def saving(self) -> float:
        """Return the seconds of all blocking saves."""
        return sum(one.saving for one in self.attempts)

    @property
    def restart(self) -> float:
        """Return the start-up of the attempts after the first one: it is due to failures."""
        return sum(one.startup for one in self.attempts[1:])

    @property
    def downtime(self) -> float:
        """Return checkpoints and, of each failure, detection, lost work, shutdown and restart; waits are apart."""
        return self.restart + sum(one.saving + one.detection + one.lost + one.shutdown for one in self.attempts)

    @property
    def hardware(self) -> float:
        """Return the part of the downtime that failures of hardware or fabric caused, restarts after them included."""
        found = 0.0
        for number, one in enumerate(self.attempts):
            if one.failed and one.hardware:
                after = self.attempts[number + 1].startup if number + 1 < len(self.attempts) else 0.0
                found += one.detection + one.lost + one.shutdown + after
        return found


def run_time(run: SupervisedRun) -> RunTime:
    """Return the times of a run's ended attempts."""
    known = [one for one in run.ended if _is_timed(one)]
    next_launches = [*(one.launched for one in known[1:]), None][: len(known)]
    return RunTime(
        run=run.id,
        nodes=run.ordered.nodes,
        gpus=next((one.gpus or one.nodes for one in known), run.ordered.nodes),
        attempts=tuple(map(_attempt, known, next_launches)),
        unknown=tuple(one.job for one in run.ended if one not in known),
        saves=sum(one.saves for one in known),
    )


def _is_timed(ended: JobAttemptEnded) -> bool:
    return ended.launched is not None and ended.stopped is not None


def _attempt(ended: JobAttemptEnded, after: datetime | None) -> AttemptTime:
    launched, stopped = ended.launched, ended.stopped
    if launched is None or stopped is None:
        raise ValueError("the times of the attempt are not known")
    failed = ended.state != COMPLETED
    detected = _within(ended.detected or stopped, launched, stopped)
    first = _within(ended.first_at, launched, detected) if ended.first_at is not None else detected
    last = _within(ended.last_at, first, detected) if ended.last_at is not None else first
    steps = _seconds(first, last)
    saving = min(ended.saving_s, steps)
    kept = _within(ended.saved_at, first, last) if ended.saved_at is not None else first
    lost = min(_seconds(kept, last), steps - saving) if failed else 0.0
    return AttemptTime(
        job=ended.job,
        failed=failed,
        hardware=ended.layer in OF_HARDWARE,
        startup=_seconds(launched, first),
        useful=steps - saving - lost,
        saving=saving,
        lost=lost,
        detection=_seconds(last, detected),
        shutdown=_seconds(detected, stopped),
        wait=max(0.0, _seconds(stopped, after)) if after is not None else 0.0,
    )


def _within(at: datetime | None, low: datetime, high: datetime) -> datetime:
    """Return a time, not outside of others: the watcher sees steps later than the scheduler sees the end."""
    return min(max(at or low, low), high)


def _seconds(begin: datetime, end: datetime) -> float:
    return (end - begin).total_seconds()


@dataclass(frozen=True, slots=True, kw_only=True)
class Rate:
    """Failures of hardware and fabric in node-days: the mean time to failure of a node in days, with its bounds.

    The bounds are those of Poisson's distribution at 95 % (Garwood, Biometrika 28, 1936); None: no bound.
    """

    failures: int
    node_days: float
    days: float | None
    low: float | None
    high: float | None

    @property
    def per_thousand(self) -> float | None:
        """Return failures in 1000 node-days."""
        return 1000 * self.failures / self.node_days if self.node_days else None


def failure_rate(runs: Iterable[RunTime]) -> Rate:
    """Return the rate of failures over all runs."""
    failures, node_days = 0, 0.0
    for run in runs:
        failures += sum(one.failed and one.hardware for one in run.attempts)
        node_days += run.nodes * sum(one.total - one.wait for one in run.attempts) / DAY_S
    low, high = poisson_bounds(failures)
    return Rate(
        failures=failures,
        node_days=node_days,
        days=node_days / failures if failures else None,
        low=node_days / high if node_days else None,
        high=node_days / low if low and node_days else None,
    )


def poisson_bounds(count: int, level: float = 0.95) -> tuple[float, float]:
    """Return the bounds of the expectation of which `count` events are a likely outcome."""
    tail = (1 - level) / 2
    low = _solve(lambda mean: 1 - _at_most(count - 1, mean), tail) if count else 0.0
    high = _solve(lambda mean: 1 - _at_most(count, mean), 1 - tail)
    return low, high


def _solve(rising: Callable[[float], float], wanted: float) -> float:
    """Return the expectation at which a function of it that rises from 0 to 1 is `wanted`, by bisection."""
    low, high = 0.0, 10.0
    while rising(high) < wanted:
        high *= 2
    for _ in range(200):
        middle = (low + high) / 2
        low, high = (middle, high) if rising(middle) < wanted else (low, middle)
    return (low + high) / 2


def _at_most(count: int, mean: float) -> float:
    """Return the probability of at most `count` events."""
    if count < 0:
        return 0.0
    return min(1.0, math.fsum(_exactly(number, mean) for number in range(count + 1)))


def _exactly(count: int, mean: float) -> float:
    """Return the probability of `count` events."""
    return math.exp(count * math.log(mean) - mean - math.lgamma(count + 1)) if mean else float(count == 0)


def spares(nodes: int, per_node_day: float, repair_days: float, sure: float = 0.99) -> int:
    """Return the spares with which `nodes` nodes run with this certainty, where a repair takes so many days."""
    mean = nodes * per_node_day * repair_days
    count = max(0, math.floor(mean - _NEVER * math.sqrt(mean)))
    found = _exactly(count, mean)
    while found < sure:
        count += 1
        found += _exactly(count, mean)
    return count


def checkpoint_interval(saving_s: float, nodes: int, per_node_day: float) -> float | None:
    """Return the seconds between checkpoints that cost least (Young, 1974): sqrt(2 w / (N r)); None without a rate."""
    rate = nodes * per_node_day / DAY_S
    return math.sqrt(2 * saving_s / rate) if rate > 0 and saving_s > 0 else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Downtime:
    """All runs together.

    hardware_mean      hardware-attributed downtime / elapsed, the mean over runs; `hardware_weighted`: by GPU hours
    saving_s           mean seconds of a blocking save; None where none was seen
    """

    runs: tuple[RunTime, ...]
    rate: Rate
    hardware_mean: float | None
    hardware_weighted: float | None
    saving_s: float | None


def downtime(runs: Sequence[SupervisedRun]) -> Downtime:
    """Return the downtime of runs with at least one attempt of which the times are known."""
    found = tuple(time for time in map(run_time, runs) if time.jobs)
    timed = [one for one in found if one.elapsed > 0]
    shares = [one.hardware / one.elapsed for one in timed]
    saves = sum(one.saves for one in found)
    return Downtime(
        runs=found,
        rate=failure_rate(found),
        hardware_mean=_mean(shares, [1.0] * len(shares)),
        hardware_weighted=_mean(shares, [one.gpus * one.elapsed for one in timed]),
        saving_s=sum(one.saving for one in found) / saves if saves else None,
    )


def _mean(values: Sequence[float], weights: Sequence[float]) -> float | None:
    """Return the weighted mean; None where there are no values."""
    if not values:
        return None
    return math.fsum(map(operator.mul, weights, values)) / math.fsum(weights)
