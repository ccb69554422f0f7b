"""Waves in which idle machines are changed: claimed, looked at again, changed, counted."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Protocol

from clusterctl.edges.clock import CLOCK
from clusterctl.fleet.decisions import decision as orders
from clusterctl.fleet.errors import UsageError
from clusterctl.fleet.node import NodeId, Serial
from clusterctl.fleet.settings.plan import permitted, stops
from clusterctl.fleet.state import NodeState
from clusterctl.operations.adapters import Adapters
from clusterctl.operations.context import SiteContext
from clusterctl.operations.operation import Control, Effect, Event, Failure, Outcome, Preview, Result
from clusterctl.operations.pool import publish
from clusterctl.ports import Claims, Deadline
from clusterctl.steps.executor.step import IntentLog
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


class WaveWork(Protocol):
    """What is done to the machines of a wave.

    acts     acts that an interrupted run of the same operation may have left open
    seconds  that one wave may take
    done     what became of a machine that is changed, in one clause
    """

    @property
    def acts(self) -> frozenset[str]: ...
    @property
    def seconds(self) -> float: ...
    def run(
        self, wave: Sequence[tuple[NodeState, Serial]], acts: IntentLog, deadline: Deadline
    ) -> Iterator[BaselineResult]: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class WavePlan:
    """`effects`: text by node name; `waves`: their names in order; `canaries`: how many waves are one machine alone."""

    effects: Mapping[str, str]
    waves: tuple[tuple[str, ...], ...]
    canaries: int
    skipped: Mapping[str, str] = field(default_factory=dict)

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
        skipped, outcomes, stopped = dict(self.plan.skipped), list[Outcome](), ""
        for number, wave in enumerate(self.plan.waves):
            with self._claimed(wave, skipped) as claims:
                deadline = Deadline.after(self.work.seconds, control.cancelled)
                members = list(self._members(wave, claims, skipped))
                for settled in self.work.run(members, IntentLog(self.context.journal, claims.granted), deadline):
                    outcome = self._outcome(settled)
                    control.on_event(Event(node=outcome.node, text=outcome.text, failure=outcome.failure))
                    outcomes.append(outcome)
            rest = sum(map(len, self.plan.waves[number + 1 :]))
            failed = sum(1 for outcome in outcomes if outcome.failure)
            if control.cancelled.is_set():
                break
            if rest and stops(number, self.plan.canaries, failed, self.request.max_failures):
                stopped = f"stopped after wave {number + 1}: {failed} failed; {rest} nodes were not touched"
                break
        return Result(
            operation=self.operation,
            outcomes=tuple(sorted(outcomes, key=lambda outcome: outcome.node)),
            skipped=skipped,
            stopped=stopped,
            cancelled=control.cancelled.is_set(),
        )

    def _outcome(self, settled: BaselineResult) -> Outcome:
        values: dict[str, object] = {"by_hand": [each.what for each in settled.left], "changed": settled.changed}
        failure = Failure.of(settled.error) if settled.error else None
        return Outcome(node=settled.name, text="" if failure else self.done, failure=failure, values=values)

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
                serial = permitted(node, CLOCK.now(), from_pool=self.request.from_pool, acts=self.work.acts)
            except UsageError as error:
                skipped[name] = f"{error.message}; {error.remedy}"
                continue
            if node.in_pool(CLOCK.now()):
                held = orders.hold(node, f"{self.operation}: {orders.said(self.request.reason)}", None)
                journal.append(held.events, claim=claims.granted[node.id])
                publish(self.context, self.adapters.pool)
            yield journal.state(node.id), serial


def node_ids(context: SiteContext) -> Mapping[str, NodeId]:
    """Return the ids of all nodes of the journal by name."""
    return {node.name: node.id for node in context.journal.summaries()}
