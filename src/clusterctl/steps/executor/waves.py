"""The waves of one run: which machines are under way, how the others ended, which may begin now."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from clusterctl.fleet.node import NodeId
from clusterctl.fleet.waves import Course, Ending, Machine, Running, WaveEnd, WavePolicy, may_begin, stopped


@dataclass(slots=True)
class Waves:
    """Keeps the counts that `fleet.waves` decides on. `stopped`: why no machine begins any more; empty while they may.

    `machines`: how many the run may come to.
    """

    policy: WavePolicy
    machines: int
    now: Callable[[], float] = time.monotonic
    stopped: str = ""
    _running: dict[NodeId, Running] = field(default_factory=dict)
    _ended: dict[NodeId, WaveEnd] = field(default_factory=dict)

    def next(self, waiting: Iterable[Machine]) -> tuple[NodeId, ...]:
        """Return which of the waiting machines may begin."""
        return may_begin(self.policy, self._course, tuple(waiting), self.now())

    def begin(self, machine: Machine) -> None:
        self._running[machine.id] = Running(machine, self.now())

    def leave(self, node: NodeId) -> None:
        """Count the machine as under way no longer, however it ended."""
        self._running.pop(node, None)

    def end(self, machine: Machine, ending: Ending) -> str:
        """Count how the machine ended. Return why all stop now, where this was one failure too many."""
        self._ended.pop(machine.id, None)
        self._ended[machine.id] = WaveEnd(machine, ending)
        before, self.stopped = self.stopped, self.stopped or stopped(self.policy, self._course)
        return "" if before else self.stopped

    @property
    def _course(self) -> Course:
        return Course(self.machines, self._running, self._ended)
