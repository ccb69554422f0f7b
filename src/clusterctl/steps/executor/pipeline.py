"""The executor that all steps share: claim → intent → act → observe → record → decide, many nodes at once.

Nodes flow from step to step on their own: a node that is done with one step waits for no other. Each step works on a
bounded number of nodes at a time, in as many concurrent batches as arrive.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from queue import Empty, Queue

from clusterctl.fleet.errors import CancelledError, ClaimLostError, ClusterctlError, EnvironmentBrokenError
from clusterctl.fleet.event import NewEvent, Stream
from clusterctl.fleet.finding import Finding, Verdict
from clusterctl.fleet.finding_code import Code
from clusterctl.fleet.gate import Advance, Confirm, Decision
from clusterctl.fleet.node import NodeId, Step
from clusterctl.fleet.payloads.node import StepStarted
from clusterctl.fleet.payloads.runs import WavesStopped
from clusterctl.fleet.state import NodeState
from clusterctl.fleet.waves import Ending, ending, held_back
from clusterctl.ports import Claim, Deadline
from clusterctl.ports.isolation import peer_error, require_controller
from clusterctl.steps.executor.bursts import bursts
from clusterctl.steps.executor.intent_log import IntentLog
from clusterctl.steps.executor.permits import NodePermits
from clusterctl.steps.executor.recorder import Recorder
from clusterctl.steps.executor.step import StepOutcome, StepRunner
from clusterctl.steps.executor.step_queue import StepLimits, StepQueue, machine
from clusterctl.steps.executor.waves import Waves

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class PipelineProgress:
    """One thing that happened to one node. `decision` is None when a step begins, and while it goes on; `words` are
    what the machine reported meanwhile.
    """

    state: NodeState
    step: Step
    decision: Decision | None
    text: str = ""


@dataclass(frozen=True, slots=True)
class Observer:
    """Receives what happens during a run. `on_stop`: a step begins with no more nodes, and why."""

    on_progress: Callable[[PipelineProgress], None] = lambda _progress: None
    on_stop: Callable[[Step, str], None] = lambda _step, _why: None


@dataclass(frozen=True, slots=True)
class _Recorded:
    queue: StepQueue
    state: NodeState
    decision: Decision


@dataclass(frozen=True, slots=True)
class _Dropped:
    """The node left the queue without a report: cancelled, or taken over by another run.

    `again`: it was in a batch that ended early because another of its nodes was taken over; it can be tried again.
    """

    queue: StepQueue
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
        runners: Sequence[StepRunner],
        recorder: Recorder,
        limits: Mapping[Step, StepLimits],
        cancelled: threading.Event,
        observer: Observer | None = None,
    ) -> None:
        self._queues = [StepQueue(runner, limits[runner.step]) for runner in runners]
        self._journal = recorder.journal
        self._recorder = recorder
        self._observer = observer or Observer()
        self._cancelled = cancelled
        self._inbox: Queue[_Recorded | _Dropped | _Broken] = Queue()

    def run(self, nodes: Sequence[NodeState], claims: Mapping[NodeId, Claim]) -> Mapping[NodeId, str]:
        """Take every node through the steps that lead on from its stage, until none can go further.

        A node that is stopped is given back at once; one on hold is not touched. Return the nodes that were left alone
        and why: another run took them meanwhile, or the step that they wait for was stopped.
        """
        intents = IntentLog(self._journal, claims, self._on_message)
        self._fill([state for state in nodes if not state.held(self._recorder.clock.now())])
        runs = sorted({claim.run for claim in claims.values()})
        permits = tuple(self._permits())
        try:
            with intents.lease.kept(*(one.keep for one in permits)):
                while self._is_busy():
                    self._tend(permits)
                    self._start_batches(intents)
                    self._handle_all(intents, runs)
        finally:
            intents.lease.close()
            for one in permits:
                one.close()
        if self._cancelled.is_set():
            raise CancelledError("stopped before all nodes were done", remedy="run the same command again to go on")
        left = dict(intents.lease.lost)
        for queue in self._queues:
            if queue.stopped:
                left |= held_back(queue.waiting, queue.runner.step, queue.stopped)
        return left

    def _is_busy(self) -> bool:
        """Return whether a node is in a step, or will begin one."""
        return any(queue.running or (queue.goes_on and not self._cancelled.is_set()) for queue in self._queues)

    def _fill(self, states: Sequence[NodeState]) -> None:
        for queue in self._queues:
            if queue.limits.waves is not None:
                queue.waves = Waves(queue.limits.waves, sum(_comes_to(state, queue.runner.step) for state in states))
            if queue.limits.permits is not None:
                queue.permits = NodePermits(queue.limits.permits)
        for state in states:
            self._enter(state)

    def _permits(self) -> Iterator[NodePermits]:
        return (queue.permits for queue in self._queues if queue.permits is not None)

    def _tend(self, permits: Sequence[NodePermits]) -> None:
        """Return the permits of nodes that have left, and report once for which nodes there are none."""
        for one in permits:
            one.keep()
            for node in one.newly_waiting():
                self._on_message(node, one.waiting)

    def _on_message(self, node: NodeId, words: str) -> None:
        """Pass on what a machine reported about itself during a step."""
        state = self._journal.state(node)
        if state.next_step is not None:
            self._observer.on_progress(PipelineProgress(state, state.next_step, None, words))

    def _enter(self, state: NodeState) -> None:
        for queue in self._queues:
            if queue.runner.step is state.next_step:
                queue.put(state)

    def _start_batches(self, intents: IntentLog) -> None:
        quiet = True
        for queue in self._queues:
            batch = [] if self._cancelled.is_set() else queue.take(quiet)
            if batch:
                work = partial(self._run_batch, queue, batch, intents)
                threading.Thread(target=work, name=f"{queue.runner.step.value}", daemon=True).start()
            quiet = quiet and not queue.busy

    def _handle_all(self, intents: IntentLog, runs: Sequence[str]) -> None:
        """Wait for a message; handle all that are there, and give back together the nodes that are done."""
        messages: list[_Recorded | _Dropped | _Broken] = []
        with suppress(Empty):
            messages.append(self._inbox.get(timeout=0.2))
            while True:
                messages.append(self._inbox.get_nowait())
        done = [node for message in messages for node in self._handle(message, runs)]
        intents.lease.give_back(done)

    def _handle(self, message: _Recorded | _Dropped | _Broken, runs: Sequence[str]) -> Iterator[NodeId]:
        """Handle one message; yield the node where nothing more is done with it."""
        match message:
            case _Broken(error):
                self._cancelled.set()
                raise error
            case _Dropped(queue, node, again):
                queue.done(node)
                if again is not None:
                    queue.put(again)
            case _Recorded(queue, state, decision):
                queue.done(state.id)
                self._observer.on_progress(PipelineProgress(state, queue.runner.step, decision))
                self._count(queue, state, decision, runs)
                if isinstance(decision, Confirm):
                    queue.put_back(state)
                elif isinstance(decision, Advance):
                    self._enter(state)
                else:
                    yield state.id

    def _count(self, queue: StepQueue, state: NodeState, decision: Decision, runs: Sequence[str]) -> None:
        """Count how the node ended for those that wait. Record and report it where the step stops with that.

        A node that is tried once more counts after that; what must not happen twice counts at once.
        """
        step = queue.runner.step
        if queue.waves is None or step.value not in state.reports:
            return
        how = ending(state.reports[step.value])
        if isinstance(decision, Confirm) and how is not Ending.RUINED:
            return
        if why := queue.waves.end(machine(state), how):
            payload = WavesStopped(step=step, reason=why)
            self._journal.append([NewEvent(Stream.RUN, run, payload) for run in runs])
            self._observer.on_stop(step, why)

    def _run_batch(self, queue: StepQueue, batch: list[NodeState], intents: IntentLog) -> None:
        """Run one batch in its own thread. Whatever happens, each of its nodes leaves the queue exactly once."""
        pending = {state.id: state for state in batch}
        try:
            self._work(queue, pending, intents)
        except EnvironmentBrokenError as error:
            self._inbox.put(_Broken(error))
        except CancelledError as error:
            log.info("%s: %s", queue.runner.step.value, error)
        except ClaimLostError as error:
            log.warning("%s ends early: %s", queue.runner.step.value, error)
            for node in pending.keys() - intents.lease.lost.keys():
                self._inbox.put(_Dropped(queue, node, pending.pop(node)))
        finally:
            for node in pending:
                self._inbox.put(_Dropped(queue, node))

    def _work(self, queue: StepQueue, pending: dict[NodeId, NodeState], intents: IntentLog) -> None:
        """Run the step; nodes that it does not report become unmeasured. Nodes that are done leave `pending`."""
        step = queue.runner.step
        started = self._begin(queue, intents, pending)
        if not started:
            return
        why = "the step ended without a report about it"
        deadline = Deadline.after(queue.limits.deadline_s, self._cancelled)
        try:
            for outcomes in bursts(queue.runner.run(started, intents, deadline)):
                self._finish(queue, outcomes, intents, pending)
        except (CancelledError, ClaimLostError, EnvironmentBrokenError):
            raise
        except ClusterctlError as error:
            why = str(error)
        except Exception as error:
            require_controller(error)
            log.exception("%s failed", step.value)
            why = f"clusterctl itself failed: {type(error).__name__}"
        self._finish(queue, [_unmeasured(node, step, why) for node in pending], intents, pending)

    def _begin(self, queue: StepQueue, intents: IntentLog, pending: dict[NodeId, NodeState]) -> list[NodeState]:
        """Record that the step begins. Return the nodes' states then, without those that another run has."""
        step = queue.runner.step
        for node, error in intents.note_each(dict.fromkeys(pending, StepStarted(step=step))).items():
            self._drop(queue, pending.pop(node), error, intents)
        started = list(self._journal.states_of(pending).values())
        for state in started:
            log.info("%s: %s begins", state.name, step.value)
            self._observer.on_progress(PipelineProgress(state, step, None))
        return started

    def _finish(
        self, queue: StepQueue, outcomes: Sequence[StepOutcome], intents: IntentLog, pending: dict[NodeId, NodeState]
    ) -> None:
        """Record the outcomes of pending nodes, once each."""
        step = queue.runner.step
        first = {outcome.node: outcome for outcome in reversed(outcomes) if outcome.node in pending}
        held: list[tuple[StepOutcome, Claim]] = []
        for outcome in reversed(first.values()):
            try:
                held.append((outcome, intents.lease.claim(outcome.node)))
            except ClaimLostError as error:
                self._drop(queue, pending.pop(outcome.node), error, intents)
        for (outcome, claim), recorded in zip(held, self._recorder.record_each(step, held), strict=True):
            result = recorded
            if isinstance(result, Exception) and not isinstance(result, ClaimLostError):
                broken = _unmeasured(outcome.node, step, peer_error(result, pending[outcome.node].name).message)
                (result,) = self._recorder.record_each(step, [(broken, claim)])
            if isinstance(result, ClaimLostError):
                self._drop(queue, pending.pop(outcome.node), result, intents)
            elif isinstance(result, Exception):
                raise result
            else:
                del pending[outcome.node]
                decision, state = result
                self._inbox.put(_Recorded(queue, state, decision))

    def _drop(self, queue: StepQueue, state: NodeState, error: ClaimLostError, intents: IntentLog) -> None:
        log.warning("%s: %s", state.name, error)
        intents.lease.lose(state.id, error.message)
        self._inbox.put(_Dropped(queue, state.id))


def _comes_to(state: NodeState, step: Step) -> bool:
    """Return whether the step is still before the node."""
    order = list(Step)
    return state.next_step is not None and order.index(state.next_step) <= order.index(step)


def _unmeasured(node: NodeId, step: Step, why: str) -> StepOutcome:
    finding = Finding(
        check=step.value,
        verdict=Verdict.INCONCLUSIVE,
        code=Code.STEP_BROKE_OFF,
        cause=why,
        remedy=f"run clusterctl {step.value} on it again; if it comes back, read clusterctl nodes {node}",
        deterministic=False,
    )
    return StepOutcome(node, (finding,))
