"""How long the waves of a plan take, from how long each step took before. Pure."""

from __future__ import annotations

import math
import statistics
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain

from clusterctl.fleet.event import Event
from clusterctl.fleet.maintenance.plan import Waves
from clusterctl.fleet.node import Step
from clusterctl.fleet.payloads.node import ReportRecorded, StageAdvanced, StepStarted


@dataclass(frozen=True, slots=True, kw_only=True)
class Forecast:
    """`waves`: seconds of each wave once its jobs have ended. `unknown`: steps that were never measured, left out.

    `without`: changes that are no step, and left out, too.
    """

    waves: tuple[float, ...]
    steps: Mapping[Step, float]
    unknown: tuple[Step, ...] = ()
    without: tuple[str, ...] = ()

    @property
    def seconds(self) -> float:
        return sum(self.waves)


def forecast(waves: Waves, steps: Sequence[Step], seconds: Mapping[Step, float], batch: Mapping[Step, int]) -> Forecast:
    """Return the time of each wave. `seconds`: of each step, as measured; `batch`: nodes that a step takes at once."""
    known = [step for step in steps if step in seconds]

    def of(wave: Sequence[str]) -> float:
        return sum(seconds[step] * math.ceil(len(wave) / max(1, batch.get(step, len(wave)))) for step in known)

    return Forecast(
        waves=tuple(of(wave) for wave in waves),
        steps={step: seconds[step] for step in known},
        unknown=tuple(step for step in steps if step not in seconds),
    )


def measured(histories: Iterable[Iterable[Event]], suite: str) -> Mapping[Step, float]:
    """Return the median seconds of each step that passed, by the events of some nodes.

    A burn-in counts where it was by `suite`; burn-ins by others count only where there was none.
    """
    found: dict[Step, list[float]] = defaultdict(list)
    by_suite: list[float] = []
    for step, by, seconds in chain.from_iterable(map(_durations, histories)):
        found[step].append(seconds)
        if step is Step.BURNIN and by == suite:
            by_suite.append(seconds)
    if by_suite:
        found[Step.BURNIN] = by_suite
    return {step: statistics.median(found[step]) for step in Step if step in found}


def _durations(events: Iterable[Event]) -> Iterable[tuple[Step, str, float]]:
    """Yield step, suite and seconds from each start of a step to the advance that it led to, of one node."""
    started: dict[Step, Event] = {}
    suites: dict[str, str] = {}
    for event in events:
        match event.payload:
            case StepStarted(step=step):
                started[step] = event
            case ReportRecorded() as recorded:
                suites[recorded.report.step] = recorded.report.suite
            case StageAdvanced(to=to):
                for step in [step for step in started if step.leads_to is to]:
                    began = started.pop(step).at
                    yield step, suites.get(step.value, ""), (event.at - began).total_seconds()
            case _:
                pass
