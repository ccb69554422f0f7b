"""The executor that all steps share: claim → intent → act → observe → record → decide, many nodes at once.

Nodes flow from step to step on their own: a node that is done with one step waits for no other. Each step works on at
most `sizes[verb]` nodes at a time, in as many concurrent batches as arrive.
"""

from __future__ import annotations

import logging
import queue
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

from clusterctl.fleet.errors import CancelledError, ClaimLostError, ClusterctlError, EnvironmentBrokenError
from clusterctl.fleet.event import Kind
from clusterctl.fleet.finding import Finding, Verdict
from clusterctl.fleet.gate import Advance, Confirm, Decision
from clusterctl.fleet.node import NodeId, Verb
from clusterctl.fleet.state import NodeState
from clusterctl.ports import Claim, Deadline, Journal
from clusterctl.steps.record import Recorder
from clusterctl.steps.step import Acts, Outcome, Step, node_event

log = logging.getLogger(__name__)

RENEW_S = 30.0
LINGERS = 6
"""A step waits at most so many times its `linger_s` for a batch to grow."""


@dataclass(frozen=True, slots=True)
class Progress:
    """One thing that happened to one node, for whoever watches: `decision` is None when a step begins."""

    state: NodeState
    verb: Verb
    decision: Decision | None


Watcher = Callable[[Progress], None]


@dataclass(slots=True)
class _Lane:
    """One step's waiting nodes and running batches."""

    step: Step
    size: int
    deadline_s: float
    waiting: dict[NodeId, NodeState] = field(default_factory=dict)
    first: float = 0.0
    latest: float = 0.0
    running: set[NodeId] = field(default_factory=set)

    def put(self, state: NodeState) -> None:
        self.latest = time.monotonic()
        if len(self.waiting) < self.step.minimum:
            self.first = self.latest
        self.waiting[state.id] = state

    @property
    def busy(self) -> bool:
        return bool(self.waiting or self.running)

    def take(self, quiet: bool) -> list[NodeState]:
        """The next batch, or nothing while it is worth waiting. `quiet`: no more nodes can arrive from upstream."""
        room = self.size - len(self.running)
        if not self.waiting or room < min(self.step.minimum, self.size):
            return []
        lonely = len(self.waiting) < self.step.minimum
        if lonely and (self.running or not quiet):
            return []  # who runs may come back, or be company once it is done
        if len(self.waiting) < room and not quiet and self._lingers():
            return []
        batch = [self.waiting.pop(node) for node in list(self.waiting)[:room]]
        self.running.update(state.id for state in batch)
        return batch

    def _lingers(self) -> bool:
        """More may come: nodes arrive in bursts, so the wait begins anew with each, up to a bound.

        The bound counts from when there were enough to begin with: one that waited long for a second does not shorten
        the burst that the second came with.
        """
        now = time.monotonic()
        return now - self.latest < self.step.linger_s and now - self.first < LINGERS * self.step.linger_s


@dataclass(frozen=True, slots=True)
class _Recorded:
    lane: int
    state: NodeState
    decision: Decision


@dataclass(frozen=True, slots=True)
class _Dropped:
    """The node left the lane without a report: cancelled, or taken over by another run."""

    lane: int
    node: NodeId


@dataclass(frozen=True, slots=True)
class _Broken:
    """The journal itself failed: nothing may go on."""

    error: EnvironmentBrokenError


class Pipeline:
    """Runs steps over nodes until each has gone as far as it can."""

    def __init__(
        self,
        steps: Sequence[Step],
        journal: Journal,
        recorder: Recorder,
        *,
        sizes: Mapping[Verb, int],
        deadlines: Mapping[Verb, float],
        watch: Watcher,
        cancelled: threading.Event,
    ) -> None:
        self._lanes = [_Lane(step, sizes[step.verb], deadlines[step.verb]) for step in steps]
        self._journal = journal
        self._recorder = recorder
        self._watch = watch
        self._cancelled = cancelled
        self._inbox: queue.Queue[_Recorded | _Dropped | _Broken] = queue.Queue()

    def run(self, nodes: Sequence[NodeState], claims: Mapping[NodeId, Claim]) -> None:
        """Take every node through the steps that lead on from where it stands; returns when none can go further."""
        acts = Acts(self._journal, claims)
        for state in nodes:
            self._enter(state)
        renewed = time.monotonic()
        while any(lane.running or (lane.waiting and not self._cancelled.is_set()) for lane in self._lanes):
            self._start_batches(acts, claims)
            self._handle_one()
            if time.monotonic() - renewed > RENEW_S:
                renewed = time.monotonic()
                for run in {claim.run for claim in claims.values()}:
                    self._journal.renew(run)
        if self._cancelled.is_set():
            raise CancelledError("stopped before all nodes were done", remedy="run the same command again to go on")

    def _enter(self, state: NodeState) -> None:
        for lane in self._lanes:
            if lane.step.verb is state.next_verb:
                lane.put(state)

    def _start_batches(self, acts: Acts, claims: Mapping[NodeId, Claim]) -> None:
        quiet = True
        for index, lane in enumerate(self._lanes):
            batch = [] if self._cancelled.is_set() else lane.take(quiet)
            if batch:
                work = partial(self._batch, index, batch, acts, claims)
                threading.Thread(target=work, name=f"{lane.step.verb.value}", daemon=True).start()
            quiet = quiet and not lane.busy

    def _handle_one(self) -> None:
        try:
            message = self._inbox.get(timeout=0.2)
        except queue.Empty:
            return
        match message:
            case _Broken(error):
                self._cancelled.set()
                raise error
            case _Dropped(index, node):
                self._lanes[index].running.discard(node)
            case _Recorded(index, state, decision):
                self._lanes[index].running.discard(state.id)
                self._watch(Progress(state, self._lanes[index].step.verb, decision))
                if isinstance(decision, Confirm):
                    self._lanes[index].put(state)
                elif isinstance(decision, Advance):
                    self._enter(state)

    def _batch(self, index: int, batch: list[NodeState], acts: Acts, claims: Mapping[NodeId, Claim]) -> None:
        """One batch in its own thread. Whatever happens, each of its nodes leaves the lane exactly once."""
        pending = {state.id: state for state in batch}
        try:
            self._work(index, pending, acts, claims)
        except EnvironmentBrokenError as error:
            self._inbox.put(_Broken(error))
        except (CancelledError, ClaimLostError) as error:
            log.info("%s: %s", self._lanes[index].step.verb.value, error)
        finally:
            for node in pending:
                self._inbox.put(_Dropped(index, node))

    def _work(self, index: int, pending: dict[NodeId, NodeState], acts: Acts, claims: Mapping[NodeId, Claim]) -> None:
        """Run the step; what it does not report becomes unmeasured. Reported nodes leave `pending`."""
        lane = self._lanes[index]
        started = [self._begin(lane, state, claims[state.id]) for state in pending.values()]
        why = "the step ended without a word about it"
        try:
            for outcome in lane.step.run(started, acts, Deadline.after(lane.deadline_s, self._cancelled)):
                if pending.pop(outcome.node, None) is not None:
                    self._finish(index, outcome, claims[outcome.node])
        except (CancelledError, ClaimLostError, EnvironmentBrokenError):
            raise
        except ClusterctlError as error:
            why = str(error)
        except Exception as error:
            log.exception("%s failed", lane.step.verb.value)
            why = f"clusterctl itself failed: {type(error).__name__}"
        for node in list(pending):
            del pending[node]
            self._finish(index, _unmeasured(node, lane.step.verb, why), claims[node])

    def _begin(self, lane: _Lane, state: NodeState, claim: Claim) -> NodeState:
        self._journal.append([node_event(state.id, Kind.STEP_STARTED, step=lane.step.verb.value)], claim=claim)
        started = self._journal.state(state.id)
        self._watch(Progress(started, lane.step.verb, None))
        return started

    def _finish(self, index: int, outcome: Outcome, claim: Claim) -> None:
        decision, state = self._recorder.record(self._lanes[index].step.verb, outcome, claim)
        self._inbox.put(_Recorded(index, state, decision))


def _unmeasured(node: NodeId, verb: Verb, why: str) -> Outcome:
    finding = Finding(
        check=verb.value,
        verdict=Verdict.INCONCLUSIVE,
        cause=why,
        remedy=f"run clusterctl {verb.value} on it again; if it comes back, read clusterctl node {node}",
        deterministic=False,
    )
    return Outcome(node, (finding,))
