"""How long each step is expected to take for a node, by what the journal holds."""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping

from clusterctl.fleet.event import Event, Stream
from clusterctl.fleet.node import Stage, Step
from clusterctl.fleet.payloads.node import StageAdvanced, StepStarted
from clusterctl.ports import Journal

SAMPLE = 8
"""So many nodes are read: their histories hold reports, which take milliseconds each."""


def expected_seconds(journal: Journal) -> Mapping[Step, float]:
    """Return the median seconds of each step that passed, over a sample of gold nodes; steps without one are absent."""
    gold = sorted(
        (node for node in journal.summaries() if node.stage is Stage.GOLD),
        key=lambda node: node.since.timestamp() if node.since else 0.0,
    )
    found: dict[Step, list[float]] = defaultdict(list)
    for node in gold[-SAMPLE:]:
        for step, seconds in step_durations(journal.history(Stream.NODE, node.id)):
            found[step].append(seconds)
    return {step: statistics.median(seconds) for step, seconds in found.items()}


def step_durations(events: Iterable[Event]) -> Iterator[tuple[Step, float]]:
    """Yield the seconds from each start of a step to the advance that it led to, of one node's events."""
    started: dict[Step, Event] = {}
    for event in events:
        match event.payload:
            case StepStarted(step=step):
                started[step] = event
            case StageAdvanced(to=to):
                for step in [step for step in started if step.leads_to is to]:
                    yield step, (event.at - started.pop(step).at).total_seconds()
            case _:
                pass
