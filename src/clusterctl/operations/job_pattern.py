"""How a job is slow, by the times of its steps: a job's log, or a file with one number a line."""

from __future__ import annotations

import math
import statistics
from dataclasses import dataclass
from pathlib import Path

from clusterctl.fleet.errors import UsageError
from clusterctl.formats.training_steps import step_of
from clusterctl.jobs.patterns import FoundPattern, classify
from clusterctl.operations.documents import lines_in

MAX_STEPS = 5_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class PatternRequest:
    """`expected`: seconds that a step should take; None where unknown."""

    file: Path
    expected: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PatternResult:
    """The patterns; `first` is the number of the first step, `median` the seconds of a step."""

    patterns: tuple[FoundPattern, ...]
    steps: int
    first: int
    median: float

    @property
    def exit_code(self) -> int:
        """0: nothing is to be done; 1: a pattern raises an alarm."""
        return 1 if any(one.meaning.alarm for one in self.patterns) else 0


def run(request: PatternRequest) -> PatternResult:
    """Classify the steps of a file. Raises `UsageError` where it has no step with its time."""
    numbers, seconds = _steps(request.file)
    if not seconds:
        remedy = "give a log with times of steps, or a file with the seconds of one step a line"
        raise UsageError("has no step with its time", where=str(request.file), remedy=remedy)
    best = request.expected or statistics.median(seconds)
    throughput = [best / one for one in seconds]
    return PatternResult(
        patterns=classify(throughput, against_expected=request.expected is not None),
        steps=len(seconds),
        first=numbers[0],
        median=statistics.median(seconds),
    )


def _steps(file: Path) -> tuple[list[int], list[float]]:
    """Return numbers and seconds of the steps; a line that is a number alone is the next step."""
    numbers: list[int] = []
    seconds: list[float] = []
    for line in lines_in(file, errors="replace"):  # a log has what programs print, in any encoding
        for text in line.split("\r"):
            found = _number(text)
            step = step_of(text) if found is None else None
            value = found if found is not None else step.seconds if step is not None else None
            if value is not None and value > 0 and len(seconds) < MAX_STEPS:
                numbers.append(step.number if step is not None else len(numbers) + 1)
                seconds.append(value)
    return numbers, seconds


def _number(text: str) -> float | None:
    """Return the number that a line is, in whole or behind a comma (`12,0.53`); None where it is none."""
    try:
        value = float(text.rpartition(",")[2])
    except ValueError:
        return None
    return value if math.isfinite(value) else None
