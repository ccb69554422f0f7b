"""How far a plan came: the fold of its events, and whether the next nodes may begin. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from clusterctl.fleet.event import Event
from clusterctl.fleet.maintenance.plan import Waves, wave_label
from clusterctl.fleet.payloads.maintenance import (
    MaintenanceMoved,
    MaintenanceOrdered,
    MaintenanceRun,
    MaintenanceTurn,
    PlanStage,
    Turn,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeTurn:
    """Where a node stands within the plan, since the event `seq`."""

    turn: Turn = Turn.WAITING
    text: str = ""
    seq: int = 0
    at: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """A plan as its events leave it.

    plan     as JSON
    turns    by node name; a node without one waits
    resumed  the event with which the plan last began or went on: older failures no longer count
    runs     ids of the runs that worked on it
    back     the change is taken back
    """

    name: str
    plan: Mapping[str, Any]
    waves: Waves
    skipped: Mapping[str, str] = field(default_factory=dict)
    stage: PlanStage = PlanStage.RUNNING
    reason: str = ""
    turns: Mapping[str, NodeTurn] = field(default_factory=dict)
    ordered: datetime
    moved: datetime
    actor: str = ""
    resumed: int = 0
    runs: frozenset[str] = frozenset()
    back: bool = False

    @property
    def names(self) -> tuple[str, ...]:
        """Return all nodes that have a turn, wave by wave."""
        return tuple(name for wave in self.waves for name in wave)

    @property
    def labels(self) -> tuple[str, ...]:
        """Return what each wave is called."""
        canary = int(self.plan.get("waves", {}).get("canary", 0))
        return tuple(wave_label(canary, number) for number in range(len(self.waves)))

    def of(self, name: str) -> NodeTurn:
        return self.turns.get(name, NodeTurn())

    def with_turn(self, *turns: Turn) -> tuple[str, ...]:
        """Return the nodes that stand at one of these turns."""
        return tuple(name for name in self.names if self.of(name).turn in turns)

    def is_open(self, name: str) -> bool:
        """Return whether the node still has its turn before it; failed and skipped ones, once the plan goes on."""
        found = self.of(name)
        if found.turn in (Turn.FAILED, Turn.SKIPPED):
            return found.seq < self.resumed
        return found.turn is not Turn.DONE

    @property
    def open(self) -> tuple[str, ...]:
        return tuple(name for name in self.names if self.is_open(name))

    @property
    def failed(self) -> tuple[str, ...]:
        """Return the nodes that failed and have had no other turn since."""
        return self.with_turn(Turn.FAILED)

    def line(self) -> str:
        """Return how far the plan came, as one line."""
        counts = Counter(self.of(name).turn for name in self.names)
        order = (Turn.FAILED, Turn.CHANGING, Turn.DRAINING, Turn.SKIPPED)
        parts = [f"{counts[Turn.DONE]} of {len(self.names)} nodes {'rolled back' if self.back else 'done'}"]
        parts += [f"{counts[turn]} {turn.value}" for turn in order if counts[turn]]
        reason = f" ({self.reason})" if self.reason and self.stage is not PlanStage.DONE else ""
        return f"{self.stage.value}: {', '.join(parts)}{reason}"


def fold(events: Iterable[Event]) -> Progress | None:
    """Return the plan as these events of its stream leave it; None without an order."""
    found: Progress | None = None
    for event in events:
        found = after(found, event)
    return found


def after(found: Progress | None, event: Event) -> Progress | None:
    """Return the plan after one more event of its stream."""
    match event.payload:
        case MaintenanceOrdered():
            return _ordered(event, event.payload)
        case _ if found is None:
            return None
        case MaintenanceMoved(to=to, reason=reason):
            resumed = event.seq if to is PlanStage.RUNNING else found.resumed
            return replace(found, stage=to, reason=reason, moved=event.at, resumed=resumed)
        case MaintenanceTurn(node=node, to=to, text=text):
            turn = NodeTurn(turn=to, text=text, seq=event.seq, at=event.at)
            return replace(found, turns={**found.turns, node: turn})
        case MaintenanceRun():
            return replace(found, runs=found.runs | {event.run})
        case _:
            return found


def _ordered(event: Event, order: MaintenanceOrdered) -> Progress:
    """Return the plan at its begin, or at the begin of its roll back: each node waits for its turn."""
    return Progress(
        name=event.subject,
        plan=order.plan,
        waves=order.waves,
        skipped=order.skipped,
        ordered=event.at,
        moved=event.at,
        actor=event.actor,
        resumed=event.seq,
        back=order.back,
    )


def halt_reason(progress: Progress, stop_percent: int, canaries: Iterable[str]) -> str:
    """Return why no more nodes may begin; empty while they may. Failures before the plan went on do not count."""
    failed = [
        name
        for name in progress.names
        if progress.of(name).turn is Turn.FAILED and progress.of(name).seq > progress.resumed
    ]
    if not failed:
        return ""
    if early := [name for name in failed if name in set(canaries)]:
        return f"the canary {early[0]} failed: {progress.of(early[0]).text}"
    ended = len(failed) + len(progress.with_turn(Turn.DONE))
    if len(failed) * 100 <= stop_percent * ended:
        return ""
    return f"{len(failed)} of {ended} nodes failed, more than the {stop_percent} % that are accepted: {failed[0]}"
