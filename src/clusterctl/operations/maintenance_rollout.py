"""A rolling change as it goes: wave by wave out of work, changed, proven and back. The journal has each move first.

A run that follows a killed one reads where each node stands. Nodes that were drained are drained still, nodes in the
middle of their change go on, and none is changed twice.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Protocol

from clusterctl.edges.clock import CLOCK
from clusterctl.fleet.decisions.maintain import is_begun, require_fit
from clusterctl.fleet.errors import CancelledError, EdgeError, UsageError
from clusterctl.fleet.event import NewEvent, Payload, Stream
from clusterctl.fleet.maintenance.plan import MaintenancePlan
from clusterctl.fleet.maintenance.progress import Progress, after, halt_reason
from clusterctl.fleet.nightly.policy import TOGETHER
from clusterctl.fleet.node import NodeId, Stage
from clusterctl.fleet.payloads.maintenance import MaintenanceMoved, MaintenanceRun, MaintenanceTurn, PlanStage, Turn
from clusterctl.fleet.payloads.node import StageAdvanced
from clusterctl.fleet.state import NodeState
from clusterctl.operations.context import SiteContext
from clusterctl.operations.maintenance_status import found
from clusterctl.operations.operation import Control, Event, Failure
from clusterctl.operations.partners import MAINTAIN, PartnerLender
from clusterctl.ports import Claim, Clock, Journal
from clusterctl.ports.deadline import SYSTEM_TIMER, Timer
from clusterctl.ports.scheduler import PREFIX

POLL_S = 15.0
"""Seconds between two looks at nodes whose jobs still run."""
TROUBLES = 40
"""So many times in a row the scheduler may not answer: ten minutes."""
LOOKS = 8
"""So many times a partner is looked for, two minutes: Slurm reports a node that was just given back as not responding
until its daemon has registered again."""
NO_PARTNER = "no idle gold node of its SKU is there to measure it with: give the plan more canaries, or larger waves"


class Changer(Protocol):
    """Changes nodes that have no work, and proves them again."""

    def change(self, names: Sequence[str], partners: Sequence[str]) -> Mapping[str, str]:
        """Change the nodes; return those that were left alone or failed at it, with the reason.

        What a killed run began goes on. How the others ended is in the journal. Raises `CancelledError`.
        """
        ...


def moved(plan: str, to: PlanStage, reason: str = "") -> NewEvent:
    return NewEvent(Stream.MAINTENANCE, plan, MaintenanceMoved(to=to, reason=reason))


def drain_reason(progress: Progress) -> str:
    """Return why the plan's nodes get no jobs, without the prefix of our reasons."""
    return f"{MAINTAIN}:{progress.name}"


def let_go(journal: Journal, lender: PartnerLender, progress: Progress) -> Mapping[str, str]:
    """Give back what no change has begun on: nodes that wait for the end of their jobs, and lent partners.

    Return the partners that cannot be given back, with the reason.
    """
    draining = progress.with_turn(Turn.DRAINING)
    lender.give_back(draining)  # one that is not drained by us any more has work already, or another owner
    if draining:
        turns = [MaintenanceTurn(node=name, to=Turn.WAITING) for name in draining]
        journal.append([NewEvent(Stream.MAINTENANCE, progress.name, turn) for turn in turns])
    return return_partners(lender, progress)


def return_partners(lender: PartnerLender, progress: Progress) -> Mapping[str, str]:
    """Give back the partners that a run of the plan had lent; return those that cannot be, with the reason."""
    lent = f"{PREFIX}{drain_reason(progress)}:"
    return lender.give_back([name for name, node in lender.occupancy().items() if node.reason.startswith(lent)])


@dataclass(slots=True, kw_only=True)
class Rollout:
    """One run of a plan. `claim`: of the plan; without it nothing more is written.

    The plan's events are read once, and again where an operator may have written some: a plan of thousands of nodes
    has many.
    """

    context: SiteContext
    lender: PartnerLender
    changer: Changer
    plan: MaintenancePlan
    control: Control
    clock: Clock = CLOCK
    timer: Timer = SYSTEM_TIMER
    claim: Claim | None = None
    _known: Progress | None = field(default=None, init=False)
    _ids: dict[str, NodeId] = field(default_factory=dict, init=False)
    _looks: Counter[str] = field(default_factory=Counter, init=False)

    @property
    def journal(self) -> Journal:
        return self.context.journal

    def run(self) -> Progress:
        """Change wave after wave until all are done, too many nodes failed, or an operator stops it."""
        self._write(MaintenanceRun())
        return_partners(self.lender, self._progress())
        for wave in self._read().waves:
            if not self._wave(wave):
                break
        progress = self._read()
        handed_back = self.control.hands_back.is_set() and progress.open
        if (progress.stage is PlanStage.RUNNING and not handed_back) or (
            progress.stage is PlanStage.PAUSED and not progress.open
        ):
            self._move(PlanStage.DONE)  # paused while its last nodes were changed: nothing is left to go on with
        for name, why in let_go(self.journal, self.lender, self._progress()).items():
            self._stuck(name, why)
        return self._read()

    def _progress(self) -> Progress:
        return self._known if self._known is not None else self._read()

    def _read(self) -> Progress:
        """Return how far the plan came, as the journal has it now."""
        self._known = found(self.context, self.plan.name)
        return self._known

    def _node(self, name: str) -> NodeState:
        if name not in self._ids:
            self._ids = {node.name: node.id for node in self.journal.summaries()}
        return self.journal.state(self._ids[name])

    def _wave(self, wave: Sequence[str]) -> bool:
        """Change the nodes of one wave, each as soon as its jobs have ended; return whether the next one may begin."""
        while self._goes_on():
            members = [name for name in wave if self._is_member(name)]
            if not members:
                return True
            ready, waiting = self._patiently_drained(members)
            with self._partnered(ready, waiting) as (batch, partners):
                if batch:
                    self._change(batch, partners)
            if not batch and any(self._progress().of(name).turn is Turn.DRAINING for name in members):
                self.timer.wait(self.control.cancelled, POLL_S)
        return False

    def _goes_on(self) -> bool:
        """Return whether nodes may begin; writes down why not."""
        progress = self._read()
        if progress.stage is not PlanStage.RUNNING:
            return False
        if self.control.cancelled.is_set():
            if not self.control.hands_back.is_set():
                self._move(PlanStage.PAUSED, "its run was cancelled")
            return False
        canaries = progress.waves[0] if self.plan.waves.canary else ()
        if reason := halt_reason(progress, self.plan.stop_percent, canaries):
            self._move(PlanStage.HALTED, reason)
            return False
        return True

    def _move(self, to: PlanStage, reason: str = "") -> None:
        self._write(MaintenanceMoved(to=to, reason=reason))

    def _write(self, payload: Payload) -> None:
        events = self.journal.append([NewEvent(Stream.MAINTENANCE, self.plan.name, payload)], claim=self.claim)
        for event in events:
            self._known = after(self._progress(), event)

    def _is_member(self, name: str) -> bool:
        """Return whether the node's turn is still before it. A node that a killed run had changed ends here."""
        progress = self._progress()
        if not progress.is_open(name):
            return False
        turn, node = progress.of(name).turn, self._node(name)
        if turn is Turn.FAILED and self._unfit(node):
            return False  # it stays failed until it is repaired
        if turn in (Turn.FAILED, Turn.CHANGING) and self._is_changed(node, progress):
            self._done(name)
            return False
        if turn is Turn.CHANGING and node.stopped_at is not None:
            self._failed(node, node.cause)
            return False
        return True

    def _is_changed(self, node: NodeState, progress: Progress) -> bool:
        return node.in_pool(self.clock.now()) and was_changed(self.journal, node.id, progress.runs)

    def _unfit(self, node: NodeState) -> str:
        """Return why the node may not be changed; empty where it may."""
        try:
            require_fit(node, self.plan.name, self.clock.now())
        except UsageError as error:
            return f"{error.message}; {error.remedy}"
        return ""

    def _patiently_drained(self, members: Sequence[str]) -> tuple[list[str], list[str]]:
        """Return what `_drain` does; a scheduler that does not answer is asked again, `TROUBLES` times at most."""
        for left in reversed(range(TROUBLES)):
            try:
                return self._drain(members)
            except EdgeError as error:
                if not left or self.control.cancelled.is_set():
                    raise
                self.control.on_event(Event(text=f"warning: the scheduler is asked again: {error}"))
                self.timer.wait(self.control.cancelled, POLL_S)
        return [], []

    def _drain(self, members: Sequence[str]) -> tuple[list[str], list[str]]:
        """Keep new jobs off the nodes; return those without jobs, and those whose jobs still run."""
        reason = drain_reason(self._progress())
        wanted = self._begun(members)
        if not wanted:
            return [], []
        self._take_over(wanted)
        drained = self.lender.drain(wanted, reason)
        for name, why in drained.refused.items():
            self._give_up(name, f"it cannot be drained: {why}")
        late = [name for name, state in drained.waiting.items() if self._is_late(name, state)]
        return sorted(drained.out, key=wanted.index), [name for name in drained.waiting if name not in late]

    def _begun(self, members: Sequence[str]) -> list[str]:
        """Begin the turn of each node that may be changed; return these, after those whose turn had begun before."""
        progress = self._progress()
        begun = [name for name in members if progress.of(name).turn in (Turn.DRAINING, Turn.CHANGING)]
        wanted = list(begun)
        for name in (name for name in members if name not in begun):
            if why := self._unfit(self._node(name)):
                self._turn(name, Turn.SKIPPED, why)
                continue
            self._turn(name, Turn.DRAINING)
            wanted.append(name)
        return wanted

    def _take_over(self, names: Sequence[str]) -> None:
        """Make the drains of nodes that failed in this plan the plan's own again: their reason names the check."""
        out = [node.name for node in map(self._node, names) if not node.in_pool(self.clock.now())]
        seen = self.lender.occupancy() if out else {}
        reason = drain_reason(self._progress())
        for name in out:
            if name in seen and seen[name].ours and seen[name].reason != f"{PREFIX}{reason}":
                self.lender.relabel(name, reason)

    def _is_late(self, name: str, state: str) -> bool:
        """Return whether the node's jobs did not end in time; it is given back then."""
        begun = self._progress().of(name).at
        if begun is None or self.clock.now() - begun <= timedelta(minutes=self.plan.drain_minutes):
            return False
        self._give_up(name, f"its jobs did not end within {self.plan.drain_minutes} min: the scheduler reports {state}")
        return True

    def _give_up(self, name: str, why: str) -> None:
        """End the turn of a node that cannot be had: skipped and given back, failed once its change has begun."""
        if not self._node(name).in_pool(self.clock.now()):
            self._turn(name, Turn.FAILED, why)
            return
        self.lender.give_back([name])
        self._turn(name, Turn.SKIPPED, why)

    @contextmanager
    def _partnered(
        self, ready: Sequence[str], waiting: Collection[str]
    ) -> Iterator[tuple[Sequence[str], Sequence[str]]]:
        """Lend idle gold nodes to nodes that are alone of their SKU; yield the nodes that can be measured, and these.

        A node without partner waits for nodes of its SKU whose jobs still run. Where there are none, it is given back
        once `LOOKS` looks for a partner have found none.
        """
        skus = self._skus(ready)
        counts = Counter(skus.values())
        needs = {sku: TOGETHER - count for sku, count in counts.items() if count < TOGETHER}
        idle = self.lender.idle_gold(needs, apart=(*ready, *waiting)) if needs else ()
        with self.lender.lend(idle, self._stuck) as (lent, _):
            counts.update(self._skus(lent).values())
            batch = [name for name in ready if counts[skus[name]] >= TOGETHER or is_begun(self._node(name))]
            to_come = set(self._skus(waiting).values())
            self._count_looks(name for name in ready if name not in batch and skus[name] not in to_come)
            yield batch, lent

    def _skus(self, names: Collection[str]) -> Mapping[str, str]:
        return {node.name: node.sku for node in map(self._node, names)}

    def _count_looks(self, alone: Iterable[str]) -> None:
        """Count a look for a partner that found none; give back a node for which that was the last one."""
        for name in alone:
            self._looks[name] += 1
            if self._looks[name] >= LOOKS:
                self._give_up(name, NO_PARTNER)

    def _stuck(self, name: str, why: str) -> None:
        self.control.on_event(Event(node=name, text=f"warning: could not be given back to the scheduler: {why}"))

    def _change(self, names: Sequence[str], partners: Sequence[str]) -> None:
        """Change nodes that have no jobs; write down how each ended."""
        progress = self._progress()
        for name in names:
            if progress.of(name).turn is not Turn.CHANGING:
                self._turn(name, Turn.CHANGING)
        left: Mapping[str, str] = {}
        try:
            left = self.changer.change(names, partners)
        except CancelledError:
            self.control.cancelled.set()
        for node in map(self._node, names):
            self._ended(node, left.get(node.name, ""))

    def _ended(self, node: NodeState, left: str) -> None:
        if not left and self._is_changed(node, self._progress()):
            self._done(node.name)
        elif node.in_pool(self.clock.now()):
            if not self.control.cancelled.is_set():
                self._give_up(node.name, left or "its change was not begun")
        elif left or node.stopped_at is not None:
            self._failed(node, left or node.cause)
        elif not self.control.cancelled.is_set():
            self._failed(node, f"it is {node.stage.value}, and its steps did not go on")

    def _done(self, name: str) -> None:
        """Give the node back, then write that it is done."""
        seen = self.lender.occupancy().get(name)
        stuck = self.lender.give_back([name]).get(name, "") if seen is not None and seen.ours else ""
        if stuck:
            self._stuck(name, stuck)
        self._turn(name, Turn.DONE, f"not given back to the scheduler: {stuck}" if stuck else "")

    def _failed(self, node: NodeState, why: str) -> None:
        """Leave the node out of work, with the check that failed as the reason of its drain."""
        check = node.findings[0].check if node.findings else "maintain"
        self.lender.relabel(node.name, f"{check}:{node.last_seq}")
        self._turn(node.name, Turn.FAILED, why)

    def _turn(self, name: str, to: Turn, text: str = "") -> None:
        self._write(MaintenanceTurn(node=name, to=to, text=text))
        failure = Failure(kind="maintenance", message=text) if to is Turn.FAILED else None
        words = f"{to.value}: {text}" if text and failure is None else to.value
        self.control.on_event(Event(node=name, text=words, failure=failure))


def was_changed(journal: Journal, node: NodeId, runs: Collection[str]) -> bool:
    """Return whether a run of the plan configured the node last, and it became gold by that.

    A node that another run configured meanwhile has the site's values, not the plan's.
    """
    configured, changed = "", False
    for event in journal.history(Stream.NODE, node):
        if isinstance(event.payload, StageAdvanced):
            if event.payload.to is Stage.CONFIGURED:
                configured = event.run
            elif event.payload.to is Stage.GOLD:
                changed = configured in runs
    return changed
