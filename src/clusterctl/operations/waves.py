"""Waves in which idle machines are changed: claimed, looked at again, changed, counted."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Protocol

from clusterctl.edges.clock import CLOCK
from clusterctl.fleet.acts import Act
from clusterctl.fleet.decisions import decision as orders
from clusterctl.fleet.decisions.permissions import settings_permitted
from clusterctl.fleet.errors import UsageError
from clusterctl.fleet.node import NodeId, Serial
from clusterctl.fleet.state import NodeState
from clusterctl.fleet.waves import Ending, Machine, WavePolicy, planned
from clusterctl.operations.adapters import Adapters
from clusterctl.operations.context import SiteContext
from clusterctl.operations.gold_pool import publish
from clusterctl.operations.operation import Control, Effect, Event, Failure, Outcome, Preview, Result
from clusterctl.ports import Claims, Deadline
from clusterctl.steps.executor.intent_log import IntentLog
from clusterctl.steps.executor.waves import Waves
from clusterctl.steps.settings.apply_baseline import BaselineResult


@dataclass(frozen=True, slots=True, kw_only=True)
class WaveRequest:
    """Which machines, and how many at a time.

    nodes         names and patterns; empty: all
    wave          machines of one wave, after one machine of each SKU alone
    max_failures  the next wave begins with at most so many failed machines
    from_pool     gold nodes, too: each is held just before its turn, and stays held
    """

    nodes: tuple[str, ...]
    reason: str
    wave: int = 4
    max_failures: int = 0
    from_pool: bool = False

    @property
    def policy(self) -> WavePolicy:
        return WavePolicy.counted(self.wave, self.max_failures)


class WaveWork(Protocol):
    """What is done to the machines of a wave.

    acts     acts that an interrupted run of the same operation may have left open
    seconds  that one wave may take
    done     what became of a machine that is changed, in one clause
    """

    @property
    def acts(self) -> frozenset[Act]: ...
    @property
    def seconds(self) -> float: ...
    def run(
        self, wave: Sequence[tuple[NodeState, Serial]], intents: IntentLog, deadline: Deadline
    ) -> Iterator[BaselineResult]: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class WavePlan:
    """`effects`: text by node name; `machines`: by node name, in their order."""

    effects: Mapping[str, str]
    machines: Mapping[str, Machine]
    policy: WavePolicy
    skipped: Mapping[str, str] = field(default_factory=dict)

    @property
    def waves(self) -> tuple[tuple[str, ...], ...]:
        """The waves by node name, as they come where no machine fails."""
        names = {machine.id: name for name, machine in self.machines.items()}
        machines = tuple(self.machines.values())
        return tuple(tuple(names[node] for node in wave) for wave in planned(self.policy, machines))

    def preview(self, operation: str) -> Preview:
        effects = tuple(
            Effect(node=name, text=f"wave {number}: {self.effects[name]}")
            for number, wave in enumerate(self.waves, start=1)
            for name in wave
        )
        question = f"Change {len(self.effects)} machines in {len(self.waves)} waves?"
        return Preview(operation=operation, question=question, effects=effects, skipped=self.skipped)


@dataclass(frozen=True, slots=True, kw_only=True)
class WaveRun:
    """One operation in waves. `done` is the text of a machine that was changed."""

    operation: str
    context: SiteContext
    adapters: Adapters
    request: WaveRequest
    plan: WavePlan
    work: WaveWork
    done: str

    def run(self, control: Control) -> Result:
        """Change the waves until all are done, too many machines have failed, or the run is cancelled."""
        skipped, outcomes = dict(self.plan.skipped), list[Outcome]()
        waiting = dict(self.plan.machines)
        waves = Waves(self.plan.policy, len(waiting))
        while (chosen := waves.next(waiting.values())) and not control.cancelled.is_set():
            names = [name for name, machine in waiting.items() if machine.id in chosen]
            wave = {name: waiting.pop(name) for name in names}
            changed = list(self._change(names, skipped, control))
            endings = _endings(changed)
            for name, machine in wave.items():
                waves.end(machine, endings.get(name, Ending.OTHER))  # a machine that is skipped counts as no failure
            outcomes += changed
        cancelled = control.cancelled.is_set()
        stopped = waves.stopped if waiting and not cancelled else ""
        return Result(
            operation=self.operation,
            outcomes=tuple(sorted(outcomes, key=lambda outcome: outcome.node)),
            skipped=skipped,
            stopped=f"stopped, because {stopped}: {len(waiting)} nodes were not touched" if stopped else "",
            cancelled=cancelled,
        )

    def _change(self, wave: Sequence[str], skipped: dict[str, str], control: Control) -> Iterator[Outcome]:
        """Change the machines of one wave, all at once; yield each one's outcome as soon as it is known."""
        with self._claimed(wave, skipped) as claims:
            deadline = Deadline.after(self.work.seconds, control.cancelled)
            members = list(self._members(wave, claims, skipped))
            for result in self.work.run(members, IntentLog(self.context.journal, claims.granted), deadline):
                outcome = self._outcome(result)
                control.on_event(Event(node=outcome.node, text=outcome.text, failure=outcome.failure))
                yield outcome

    def _outcome(self, result: BaselineResult) -> Outcome:
        values: dict[str, object] = {"by_hand": [each.what for each in result.left], "changed": result.changed}
        failure = Failure.of(result.error) if result.error else None
        return Outcome(node=result.name, text="" if failure else self.done, failure=failure, values=values)

    @contextmanager
    def _claimed(self, wave: Sequence[str], skipped: dict[str, str]) -> Iterator[Claims]:
        """Claim those nodes of the wave that no other run holds; note the holders of the others."""
        names = {node: name for name, node in node_ids(self.context).items() if name in wave}
        claims = self.context.journal.claim(names, self.context.run)
        try:
            skipped.update({names[node]: holder for node, holder in claims.refused.items()})
            yield claims
        finally:
            self.context.journal.release(claims.granted.values())

    def _members(
        self, wave: Sequence[str], claims: Claims, skipped: dict[str, str]
    ) -> Iterator[tuple[NodeState, Serial]]:
        """Return those of the wave that may still be changed now that they are claimed; gold ones are held first."""
        journal, known = self.context.journal, node_ids(self.context)
        for name in wave:
            node = journal.state(known[name])
            if node.id not in claims.granted:
                continue
            try:
                serial = settings_permitted(node, CLOCK.now(), from_pool=self.request.from_pool, acts=self.work.acts)
            except UsageError as error:
                skipped[name] = f"{error.message}; {error.remedy}"
                continue
            if node.in_pool(CLOCK.now()):
                held = orders.hold(node, f"{self.operation}: {orders.checked_reason(self.request.reason)}", None)
                journal.append(held.events, claim=claims.granted[node.id])
                publish(self.context.journal, self.adapters.pool)
            yield journal.state(node.id), serial


def _endings(outcomes: Iterable[Outcome]) -> dict[str, Ending]:
    return {outcome.node: Ending.FAILED if outcome.failure else Ending.GOOD for outcome in outcomes}


def node_ids(context: SiteContext) -> Mapping[str, NodeId]:
    """Return the ids of all nodes of the journal by name."""
    return {node.name: node.id for node in context.journal.summaries()}
