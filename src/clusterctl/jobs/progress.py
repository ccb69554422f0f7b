"""Progress of a training job by its log: steps and checkpoints, through readers that can be chosen.

frameworks  the forms of `formats.training_steps`, and the checkpoints of Megatron-LM and torchtitan
mllog       `:::MLLOG {…}`: `metadata.step`, else `metadata.samples_count`; throughput is not read
jsonl       one JSON object a line: `step`, `global_step` or `iteration`; `seconds` or `step_time`; `checkpoint`
regex       a pattern with the group `step`, and `seconds` where it has it
tensorboard event files in a folder: the steps of their summaries, with the times between them
"""

from __future__ import annotations

import enum
import itertools
import json
import math
import re
import statistics
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from clusterctl.fleet.errors import UsageError
from clusterctl.fleet.regular_expressions import compiled
from clusterctl.formats.tensorboard import EventStep
from clusterctl.formats.training_steps import step_of

WARM_UP = 5
"""The first intervals of an attempt mean nothing: compilation, caches."""
KEPT = 20_000
_LONGEST_LINE = 20_000
_TENSORBOARD = "tensorboard:"
PATTERN = "regex:"
"""Begins the name of a reader of lines by a pattern."""
_SAVING = re.compile(r"saving checkpoint at iteration\s{1,20}(?P<step>\d{1,12})")
_SAVED = re.compile(r"successfully saved checkpoint from iteration\s{1,20}(?P<step>\d{1,12})")
_SCHEDULED = re.compile(r"scheduled an async checkpoint save at iteration\s{1,20}(?P<step>\d{1,12})")
_MLLOG = re.compile(r":::MLLOG (?P<json>\{.{1,20000}\})\s{0,8}$")


@dataclass(frozen=True, slots=True)
class Reading:
    """What one line reports. `saving`: a blocking save begins; `goes_on`: training goes on; `saved`: it is durable.

    `saved_step`: the step that it holds; None for the last one.
    """

    step: int | None = None
    seconds: float | None = None
    saving: bool = False
    goes_on: bool = False
    saved: bool = False
    saved_step: int | None = None


Reader = Callable[[str], Reading | None]


class ReaderName(enum.Enum):
    """Names of the readers that need no pattern."""

    FRAMEWORKS = "frameworks"
    MLLOG = "mllog"
    JSONL = "jsonl"


def frameworks(line: str) -> Reading | None:
    """Read the lines of training frameworks."""
    step = step_of(line)
    if step is not None:
        return Reading(step.number, step.seconds)
    if _SAVING.search(line):
        return Reading(saving=True)
    if match := _SAVED.search(line):
        return Reading(saved=True, goes_on=True, saved_step=int(match["step"]))
    return Reading(goes_on=True) if _SCHEDULED.search(line) else None


def mllog(line: str) -> Reading | None:
    """Read lines of MLPerf's logging."""
    match = _MLLOG.search(line)
    found = _object(match["json"]) if match else None
    metadata = found.get("metadata") if found else None
    if not isinstance(metadata, Mapping):
        return None
    number = _number(metadata, ("step", "samples_count"))
    return Reading(int(number)) if number is not None else None


def json_lines(line: str) -> Reading | None:
    """Read lines that are one JSON object each."""
    found = _object(line.strip()) if line.lstrip().startswith("{") else None
    number = _number(found, ("step", "global_step", "iteration")) if found else None
    if found is None or number is None:
        return None
    saved = found.get("checkpoint") is True
    seconds = _number(found, ("seconds", "step_time"))
    return Reading(int(number), seconds, saved=saved, goes_on=saved, saved_step=int(number) if saved else None)


_READERS: Mapping[ReaderName, Reader] = {
    ReaderName.FRAMEWORKS: frameworks,
    ReaderName.MLLOG: mllog,
    ReaderName.JSONL: json_lines,
}


def reader(name: str) -> Reader:
    """Return the reader of lines `frameworks`, `mllog`, `jsonl` or `regex:PATTERN`. Raises `UsageError`.

    That of `tensorboard:PATH` reads no line.
    """
    if name.startswith(_TENSORBOARD):
        if not name.removeprefix(_TENSORBOARD).startswith("/"):
            raise UsageError("the path must begin with /", where="--reader", remedy="write tensorboard:/shared/runs/%j")
        return lambda _line: None
    if name.startswith(PATTERN):
        return _by_pattern(name.removeprefix(PATTERN))
    try:
        return _READERS[ReaderName(name)]
    except ValueError:
        known = ", ".join([*(one.value for one in ReaderName), "regex:PATTERN", "tensorboard:PATH"])
        raise UsageError(f"there is no reader {name!r}", where="--reader", remedy=f"take one of {known}") from None


def events_path(names: Sequence[str]) -> str:
    """Return the folder or file of the reader `tensorboard:PATH`; empty where it is not among the readers."""
    found = (name.removeprefix(_TENSORBOARD) for name in names if name.startswith(_TENSORBOARD))
    return next(found, "")


def event_readings(events: Sequence[EventStep], before: EventStep | None) -> Sequence[Reading]:
    """Return the steps after that of `before`, with the seconds of a step since then by the times of the events."""
    found: list[Reading] = []
    for one in events:
        if before is not None and one.step <= before.step:
            continue
        seconds = None if before is None else (one.at - before.at) / (one.step - before.step)
        found.append(Reading(one.step, seconds if seconds is not None and seconds >= 0 else None))
        before = one
    return found


def _by_pattern(pattern: str) -> Reader:
    try:
        form = compiled(pattern)
    except ValueError as error:
        raise UsageError(f"the pattern is wrong: {error}", where="--reader", remedy="correct it") from None
    if "step" not in form.groupindex:
        raise UsageError("the pattern has no group (?P<step>…)", where="--reader", remedy="name the step's digits so")

    def read(line: str) -> Reading | None:
        match = form.search(line[:2000])
        if match is None:
            return None
        found = {name: value for name, value in match.groupdict().items() if value}
        number = _number(found, ("step",))
        return Reading(int(number), _number(found, ("seconds",))) if number is not None else None

    return read


def _object(text: str) -> Mapping[str, Any] | None:
    try:
        found = json.loads(text[:_LONGEST_LINE])
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, Mapping) else None


def _number(found: Mapping[str, Any], names: Sequence[str]) -> float | None:
    for name in names:
        value = found.get(name)
        if isinstance(value, bool) or not isinstance(value, (int, float, str)):
            continue
        try:
            number = float(value)
        except (ValueError, OverflowError):  # the latter for a whole number of hundreds of digits
            continue
        if 0 <= number < 1e12:
            return number
    return None


@dataclass(slots=True, kw_only=True)
class JobProgress:
    """What an attempt has done so far. Times are those at which it was seen.

    Of what was seen at one look, `first_at`, `last_at` and `saved_at` are earlier by the seconds of the steps after it,
    where all lines of steps have them.

    first_at, last_at    of its first and last step; `first`, `last`: their numbers
    active_at            of the last sign of progress: a step, a checkpoint, a heartbeat
    seconds              of each step, where the lines have them, else the time since the step before
    longest              the longest time between two signs of progress after the first steps
    saved_at, saved      the last durable checkpoint, and the step before it
    saving_s, saves      seconds in which saves kept the training waiting, and how many did
    """

    first: int | None = None
    last: int | None = None
    first_at: datetime | None = None
    last_at: datetime | None = None
    active_at: datetime | None = None
    steps: int = 0
    seconds: deque[float] = field(default_factory=lambda: deque(maxlen=KEPT))
    longest: float = 0.0
    saved: int | None = None
    saved_at: datetime | None = None
    saving_s: float = 0.0
    saves: int = 0
    saving_since: datetime | None = None

    def add(self, reading: Reading, at: datetime) -> None:
        """Take in what a line reports."""
        self.add_all((reading,), at)

    def add_all(
        self, readings: Sequence[Reading], at: datetime, *, watched: bool = True, since: datetime | None = None
    ) -> None:
        """Take in what was reported since the last look; `watched`: that was a short while ago; `since`: the start.

        Steps without seconds share the time since the last one. After a time without a watcher it is not known how long
        a step took, nor how long the job was silent: nothing is learned from it.
        """
        if not readings:
            return
        if not watched:
            self.resumed(at)
        numbers = [one.step for one in readings if one.step is not None]
        each = self._seconds_each(max(numbers), at) if numbers and watched else None
        earliest = max((one for one in (since, self.last_at) if one is not None), default=at)
        room = max(0.0, (at - earliest).total_seconds())
        for one, later in zip(readings, _later(readings, self.last), strict=True):
            self._take(one, at, each, at - timedelta(seconds=min(later, room)))

    def _seconds_each(self, newest: int, at: datetime) -> float | None:
        """Return the seconds of each step since the last one; None where there is none before or after it."""
        if self.last is None or self.last_at is None or newest <= self.last:
            return None
        return (at - self.last_at).total_seconds() / (newest - self.last)

    def _take(self, reading: Reading, at: datetime, each: float | None, made: datetime) -> None:
        """Take in a line that was seen `at`, and `made` before."""
        self._alive(at)
        if reading.saving:
            self.saving_since = at
        further = reading.step is not None and self.last is not None and reading.step > self.last
        if (reading.goes_on or further) and self.saving_since is not None:
            self.saving_s += max(0.0, (at - self.saving_since).total_seconds())
            self.saving_since = None
            self.saves += 1
        if reading.saved:
            self.saved, self.saved_at = (self.last if reading.saved_step is None else reading.saved_step), made
        if reading.step is not None:
            self._step(reading.step, reading.seconds if reading.seconds is not None else each, made)

    def resumed(self, at: datetime) -> None:
        """Take in that the job could not be seen until now, or did not run: its silence means nothing."""
        self.active_at = max(at, self.active_at or at)

    def heartbeat(self, at: datetime) -> None:
        """Take in that a heartbeat file was written."""
        if self.active_at is None or at > self.active_at:
            self._alive(at)

    def _step(self, number: int, seconds: float | None, at: datetime) -> None:
        if self.last is not None and number <= self.last:
            return  # another rank reports the same step
        if seconds is not None:
            self.seconds.append(seconds)
        if self.first is None:
            self.first, self.first_at = number, at
        self.last, self.last_at = number, at
        self.steps += 1

    def _alive(self, at: datetime) -> None:
        if self.active_at is not None and self.steps > WARM_UP:
            self.longest = max(self.longest, (at - self.active_at).total_seconds())
        self.active_at = max(at, self.active_at or at)

    @property
    def median(self) -> float | None:
        """Return the median seconds of a step, without the first ones; None where it is not known."""
        known = list(self.seconds)[WARM_UP:]
        return statistics.median(known) if known else None


def _later(readings: Sequence[Reading], last: int | None) -> Sequence[float]:
    """Return for each line the seconds of the steps after it; zeros where one of those has no seconds.

    `last`: the last step before them; other ranks report steps once more. A line may stand for several steps.
    """
    seconds: list[float] = []
    for one in readings:
        if one.step is None or (last is not None and one.step <= last):
            seconds.append(0.0)
            continue
        steps = one.step - last if last is not None else 1
        seconds.append(steps * one.seconds if one.seconds is not None else math.inf)
        last = one.step
    after = [*seconds[1:], 0.0]
    if math.inf in after:
        return [0.0] * len(after)
    return list(itertools.accumulate(reversed(after)))[::-1]
