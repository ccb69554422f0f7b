"""The executor that all steps share: claim → intent → act → observe → record → decide, many nodes at once.

Nodes flow from step to step on their own: a node that is done with one step waits for no other. Each step works on at
most `sizes[step]` nodes at a time, in as many concurrent batches as arrive.
"""

from __future__ import annotations

import errno
import logging
import queue
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from clusterctl.fleet.errors import CancelledError, ClaimLostError, ClusterctlError, EnvironmentBrokenError
from clusterctl.fleet.event import Kind, NewEvent
from clusterctl.fleet.finding import Finding, Verdict
from clusterctl.fleet.gate import Advance, Confirm, Decision
from clusterctl.fleet.node import NodeId, Step
from clusterctl.fleet.state import NodeState
from clusterctl.fleet.waves import WavePolicy, held_back
from clusterctl.ports import Claim, Deadline, Journal
from clusterctl.steps.executor.lease import Lease
from clusterctl.steps.executor.recorder import Recorder
from clusterctl.steps.executor.step import IntentLog, Outcome, StepRunner
from clusterctl.steps.executor.step_queue import StepQueue
from clusterctl.steps.executor.waves import Wave

log = logging.getLogger(__name__)

LACKING = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EMFILE, errno.ENFILE, errno.ENOMEM})
"""What the system says when the controller has no disk, files or memory left."""


@dataclass(frozen=True, slots=True)
class Progress:
    """One thing that happened to one node, for whoever watches: `decision` is None when a step begins, and while it
    goes on; `words` are what the machine told meanwhile.
    """

    state: NodeState
    step: Step
    decision: Decision | None
    words: str = ""


Watcher = Callable[[Progress], None]
Stopped = Callable[[Step, str], None]
"""Told that a step begins with no more nodes, and why."""


def _nobody(_step: Step, _why: str) -> None:
    """Where nobody watches."""


@dataclass(frozen=True, slots=True)
class _Recorded:
    lane: int
    state: NodeState
    decision: Decision


@dataclass(frozen=True, slots=True)
class _Dropped:
    """The node left the lane without a report: cancelled, or taken over by another run.

    `again`: it was in a batch that ended early because another of its nodes was taken over; it can be tried anew.
    """

    lane: int
    node: NodeId
    again: NodeState | None = None


@dataclass(frozen=True, slots=True)
class _Broken:
    """The journal itself failed: nothing may go on."""

    error: EnvironmentBrokenError


class Pipeline:
    """Runs steps over nodes until each has gone as far as it can."""

    def __init__(
        self,
        steps: Sequence[StepRunner],
        journal: Journal,
        recorder: Recorder,
        *,
        sizes: Mapping[Step, int],
        deadlines: Mapping[Step, float],
        watch: Watcher,
        cancelled: threading.Event,
        waves: Mapping[Step, WavePolicy] | None = None,
        stopped: Stopped = _nobody,
    ) -> None:
        """`waves`: of the steps that are not done to all who wait at once; `stopped` is told when one of them ends."""
        self._waves = waves or {}
        self._stopped = stopped
        self._lanes = [StepQueue(runner, sizes[runner.step], deadlines[runner.step]) for runner in steps]
        self._journal = journal
        self._recorder = recorder
        self._watch = watch
        self._cancelled = cancelled
        self._inbox: queue.Queue[_Recorded | _Dropped | _Broken] = queue.Queue()

    def run(self, nodes: Sequence[NodeState], claims: Mapping[NodeId, Claim]) -> Mapping[NodeId, str]:
        """Take every node through the steps that lead on from where it stands; returns when none can go further.

        A node that is stopped is given back at once; one that a person holds is not touched. Returned are those that
        were left alone, and why: another run took them meanwhile, or the step that they wait for was stopped.
        """
        acts = IntentLog(self._journal, claims, self._told)
        now = self._recorder.clock.now()
        able = [state for state in nodes if not state.held(now)]
        for lane in self._lanes:
            if policy := self._waves.get(lane.runner.step):
                lane.wave = Wave(policy, sum(_comes_to(state, lane.runner.step) for state in able))
        for state in able:
            self._enter(state)
        runs = sorted({claim.run for claim in claims.values()})
        try:
            while any(lane.running or (lane.goes_on and not self._cancelled.is_set()) for lane in self._lanes):
                acts.lease.keep()
                self._start_batches(acts)
                self._handle_one(acts.lease, runs)
        finally:
            acts.lease.close()
        if self._cancelled.is_set():
            raise CancelledError("stopped before all nodes were done", remedy="run the same command again to go on")
        left = [held_back(lane.waiting, lane.runner.step, lane.stopped) for lane in self._lanes if lane.stopped]
        return {**acts.lease.lost, **{node: why for nodes in left for node, why in nodes.items()}}

    def _told(self, node: NodeId, words: str) -> None:
        """A machine said something of itself while a step works on it."""
        state = self._journal.state(node)
        if state.next_step is not None:
            self._watch(Progress(state, state.next_step, None, words))

    def _enter(self, state: NodeState) -> None:
        for lane in self._lanes:
            if lane.runner.step is state.next_step:
                lane.put(state)

    def _start_batches(self, acts: IntentLog) -> None:
        quiet = True
        for index, lane in enumerate(self._lanes):
            batch = [] if self._cancelled.is_set() else lane.take(quiet)
            if batch:
                work = partial(self._batch, index, batch, acts)
                threading.Thread(target=work, name=f"{lane.runner.step.value}", daemon=True).start()
            quiet = quiet and not lane.busy

    def _handle_one(self, lease: Lease, runs: Sequence[str]) -> None:
        try:
            message = self._inbox.get(timeout=0.2)
        except queue.Empty:
            return
        match message:
            case _Broken(error):
                self._cancelled.set()
                raise error
            case _Dropped(index, node, again):
                self._lanes[index].done(node)
                if again is not None:
                    self._lanes[index].put(again)
            case _Recorded(index, state, decision):
                self._lanes[index].done(state.id)
                self._watch(Progress(state, self._lanes[index].runner.step, decision))
                self._count(self._lanes[index], state, decision, runs)
                if isinstance(decision, Confirm):
                    self._lanes[index].put_back(state)
                elif isinstance(decision, Advance):
                    self._enter(state)
                else:
                    lease.give_back(state.id)

    def _count(self, lane: StepQueue, state: NodeState, decision: Decision, runs: Sequence[str]) -> None:
        """How the node ended counts for those that wait; where it was one too many, that is written down and said."""
        step = lane.runner.step
        if lane.wave is None or step.value not in state.reports:
            return
        why = lane.wave.end(state.id, state.reports[step.value], again=isinstance(decision, Confirm))
        if why:
            data = {"step": step.value, "reason": why}
            self._journal.append([NewEvent("run", run, Kind.WAVES_STOPPED, data) for run in runs])
            self._stopped(step, why)

    def _batch(self, index: int, batch: list[NodeState], acts: IntentLog) -> None:
        """One batch in its own thread. Whatever happens, each of its nodes leaves the lane exactly once."""
        pending = {state.id: state for state in batch}
        try:
            self._work(index, pending, acts)
        except EnvironmentBrokenError as error:
            self._inbox.put(_Broken(error))
        except CancelledError as error:
            log.info("%s: %s", self._lanes[index].runner.step.value, error)
        except ClaimLostError as error:
            log.warning("%s ends early: %s", self._lanes[index].runner.step.value, error)
            for node in pending.keys() - acts.lease.lost.keys():
                self._inbox.put(_Dropped(index, node, pending.pop(node)))
        finally:
            for node in pending:
                self._inbox.put(_Dropped(index, node))

    def _work(self, index: int, pending: dict[NodeId, NodeState], acts: IntentLog) -> None:
        """Run the step; what it does not report becomes unmeasured. Nodes that are over leave `pending`."""
        lane = self._lanes[index]
        started = [state for node in list(pending.values()) if (state := self._begin(index, node, acts, pending))]
        if not started:
            return
        why = "the step ended without a word about it"
        try:
            for outcome in lane.runner.run(started, acts, Deadline.after(lane.deadline_s, self._cancelled)):
                self._finish(index, outcome, acts, pending)
        except (CancelledError, ClaimLostError, EnvironmentBrokenError):
            raise
        except ClusterctlError as error:
            why = str(error)
        except Exception as error:
            _require_controller(error)
            log.exception("%s failed", lane.runner.step.value)
            why = f"clusterctl itself failed: {type(error).__name__}"
        for node in list(pending):
            self._finish(index, _unmeasured(node, lane.runner.step, why), acts, pending)

    def _begin(
        self, index: int, state: NodeState, acts: IntentLog, pending: dict[NodeId, NodeState]
    ) -> NodeState | None:
        """The node as it stands now that its step is written down as started; None when it is another run's."""
        step = self._lanes[index].runner.step
        try:
            acts.note(state.id, Kind.STEP_STARTED, {"step": step.value})
        except ClaimLostError as error:
            self._drop(index, state.id, error, acts, pending)
            return None
        started = self._journal.state(state.id)
        self._watch(Progress(started, step, None))
        return started

    def _finish(self, index: int, outcome: Outcome, acts: IntentLog, pending: dict[NodeId, NodeState]) -> None:
        """Record a pending node's outcome, once."""
        if outcome.node not in pending:
            return
        try:
            claim = acts.lease.claim(outcome.node)
            decision, state = self._recorder.record(self._lanes[index].runner.step, outcome, claim)
        except ClaimLostError as error:
            self._drop(index, outcome.node, error, acts, pending)
            return
        del pending[outcome.node]
        self._inbox.put(_Recorded(index, state, decision))

    def _drop(
        self, index: int, node: NodeId, error: ClaimLostError, acts: IntentLog, pending: dict[NodeId, NodeState]
    ) -> None:
        log.warning("%s: %s", pending.pop(node).name, error)
        acts.lease.lose(node, error.message)
        self._inbox.put(_Dropped(index, node))


def _comes_to(state: NodeState, step: Step) -> bool:
    """Whether the step is still before the node."""
    order = list(Step)
    return state.next_step is not None and order.index(state.next_step) <= order.index(step)


def _require_controller(error: Exception) -> None:
    """Raise `EnvironmentBrokenError` where the controller itself lacks something: no node is to blame for that."""
    if isinstance(error, OSError) and error.errno in LACKING:
        raise EnvironmentBrokenError(
            f"the controller cannot go on: {error.strerror}",
            where=str(error.filename or ""),
            remedy="make room or raise that limit, then run the same command again: it goes on from here",
        ) from error


def _unmeasured(node: NodeId, step: Step, why: str) -> Outcome:
    finding = Finding(
        check=step.value,
        verdict=Verdict.INCONCLUSIVE,
        cause=why,
        remedy=f"run clusterctl {step.value} on it again; if it comes back, read clusterctl node {node}",
        deterministic=False,
    )
    return Outcome(node, (finding,))
