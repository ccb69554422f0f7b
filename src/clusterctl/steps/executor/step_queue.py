"""Where nodes wait for one step, and in which batches they are taken."""

from __future__ import annotations

import time
from dataclasses import dataclass, field

from clusterctl.fleet.node import NodeId
from clusterctl.fleet.state import NodeState
from clusterctl.steps.executor.step import StepRunner
from clusterctl.steps.executor.waves import Wave

LINGERS = 6
"""A step waits at most so many times its `linger_s` for a batch to grow."""


@dataclass(slots=True)
class StepQueue:
    """One step's waiting nodes and running batches. `running` has the number of its batch for each node; `wave` says
    who may begin, where the step is not done to all who wait.
    """

    runner: StepRunner
    size: int
    deadline_s: float
    waiting: dict[NodeId, NodeState] = field(default_factory=dict)
    first: float = 0.0
    latest: float = 0.0
    running: dict[NodeId, int] = field(default_factory=dict)
    taken: int = 0
    wave: Wave | None = None

    def put(self, state: NodeState) -> None:
        self.latest = time.monotonic()
        if len(self.waiting) < self.runner.minimum:
            self.first = self.latest
        self.waiting[state.id] = state

    def put_back(self, state: NodeState) -> None:
        """It is tried once more: in waves before those that have not begun, so that one bad machine is known to be one
        before the next begins.
        """
        self.put(state)
        if self.wave is not None:
            self.waiting = {state.id: state, **self.waiting}

    def done(self, node: NodeId) -> None:
        """The node has left its batch."""
        self.running.pop(node, None)
        if self.wave is not None:
            self.wave.leave(node)

    @property
    def stopped(self) -> str:
        """Why none of those who wait will begin; empty where they will."""
        return self.wave.stopped if self.wave is not None else ""

    @property
    def goes_on(self) -> bool:
        """Somebody waits for it who may begin, now or later."""
        return bool(self.waiting) and not self.stopped

    @property
    def busy(self) -> bool:
        return bool(self.goes_on or self.running)

    def take(self, quiet: bool) -> list[NodeState]:
        """The next batch, or nothing while it is worth waiting. `quiet`: no more nodes can arrive from upstream."""
        room = self.size - len(self.running)
        if not self.goes_on or room < min(self.runner.minimum, self.size) or self._full():
            return []
        lonely = len(self.waiting) < self.runner.minimum
        if lonely and (self.running or not quiet):
            return []  # who runs may come back, or be company once it is done
        if len(self.waiting) < room and not quiet and self._lingers():
            return []
        batch = [self.waiting.pop(node) for node in self._next()[:room]]
        if not batch:
            return []
        self.taken += 1
        self.running.update((state.id, self.taken) for state in batch)
        for state in batch:
            if self.wave is not None:
                self.wave.begin(state)
        return batch

    def _next(self) -> list[NodeId]:
        return list(self.waiting if self.wave is None else self.wave.next(self.waiting.values()))

    def _full(self) -> bool:
        """So many batches run that the next one had better grow until one of them ends."""
        return len(set(self.running.values())) >= self.runner.at_once

    def _lingers(self) -> bool:
        """More may come: nodes arrive in bursts, so the wait begins anew with each, up to a bound.

        The bound counts from when there were enough to begin with: one that waited long for a second does not shorten
        the burst that the second came with.
        """
        now = time.monotonic()
        return now - self.latest < self.runner.linger_s and now - self.first < LINGERS * self.runner.linger_s
