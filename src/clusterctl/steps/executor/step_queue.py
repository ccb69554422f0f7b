"""The queue of one step: which nodes wait for it, and in which batches they are taken."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field

from clusterctl.fleet.node import NodeId
from clusterctl.fleet.state import NodeState
from clusterctl.fleet.waves import Machine, WavePolicy
from clusterctl.steps.executor.permits import NodePermits, PermitPool
from clusterctl.steps.executor.step import StepRunner
from clusterctl.steps.executor.waves import Waves

LINGERS = 6
"""A step waits at most so many times its `linger_s` for a batch to grow."""


@dataclass(frozen=True, slots=True)
class StepLimits:
    """How many nodes a step takes, and for how long.

    size        nodes at a time
    deadline_s  for one batch
    waves       None where all that wait may begin
    permits     the limit over all runs; None where each run has its own
    """

    size: int
    deadline_s: float
    waves: WavePolicy | None = None
    permits: PermitPool | None = None


@dataclass(slots=True)
class StepQueue:
    """The waiting nodes and running batches of one step. `running` has the number of its batch for each node."""

    runner: StepRunner
    limits: StepLimits
    waves: Waves | None = None
    permits: NodePermits | None = None
    clock: Callable[[], float] = time.monotonic
    waiting: dict[NodeId, NodeState] = field(default_factory=dict)
    running: dict[NodeId, int] = field(default_factory=dict)
    _first: float = 0.0
    _latest: float = 0.0
    _batches: int = 0

    def put(self, state: NodeState) -> None:
        self._latest = self.clock()
        if len(self.waiting) < self.runner.minimum:
            self._first = self._latest
        self.waiting[state.id] = state

    def put_back(self, state: NodeState) -> None:
        """Put a node that is tried once more.

        In waves it goes before those that have not begun: a bad machine is known to be one before the next begins.
        """
        self.put(state)
        if self.waves is not None:
            self.waiting = {state.id: state, **self.waiting}

    def done(self, node: NodeId) -> None:
        """Note that the node has left its batch."""
        self.running.pop(node, None)
        if self.waves is not None:
            self.waves.leave(node)
        if self.permits is not None:
            self.permits.leave(node)

    @property
    def stopped(self) -> str:
        """Why no waiting node will begin; empty where they will."""
        return self.waves.stopped if self.waves is not None else ""

    @property
    def goes_on(self) -> bool:
        """Whether a node waits that may begin, now or later."""
        return bool(self.waiting) and not self.stopped

    @property
    def busy(self) -> bool:
        return bool(self.goes_on or self.running)

    def take(self, quiet: bool) -> list[NodeState]:
        """Return the next batch, or nothing while it is worth waiting. `quiet`: no node can arrive from upstream."""
        room = self.limits.size - len(self.running)
        if not self.goes_on or room < min(self.runner.minimum, self.limits.size) or self._full():
            return []
        if self._waits_for_more(room, quiet):
            return []
        batch = [self.waiting.pop(node) for node in self._permitted(self._next()[:room])]
        if batch:
            self._batches += 1
            self.running.update((state.id, self._batches) for state in batch)
        if self.waves is not None:
            for state in batch:
                self.waves.begin(machine(state))
        return batch

    def _waits_for_more(self, room: int, quiet: bool) -> bool:
        """Return whether a larger batch is likely: from upstream, or from a node that runs and may come back."""
        if len(self.waiting) < self.runner.minimum and (self.running or not quiet):
            return True  # a running node may be a partner once it is done
        return len(self.waiting) < room and not quiet and self._lingers()

    def _next(self) -> list[NodeId]:
        return list(self.waiting if self.waves is None else self.waves.next(map(machine, self.waiting.values())))

    def _permitted(self, nodes: list[NodeId]) -> list[NodeId]:
        return nodes if self.permits is None else self.permits.begin(nodes)

    def _full(self) -> bool:
        """Return whether so many batches run that the next one had better grow until one of them ends."""
        return len(set(self.running.values())) >= self.runner.at_once

    def _lingers(self) -> bool:
        """Return whether more nodes may come: they arrive in bursts, so each one restarts the wait, up to a bound.

        The bound counts from when there were enough to begin with: a node that waited long for a second one does not
        shorten the burst that the second one came with.
        """
        now = self.clock()
        return now - self._latest < self.runner.linger_s and now - self._first < LINGERS * self.runner.linger_s


def machine(state: NodeState) -> Machine:
    """Return the node as waves count it: all machines of a step share one canary."""
    return Machine(state.id, state.location.rack)
