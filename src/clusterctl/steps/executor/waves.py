"""The waves of one step in one run: who is under way, how the others ended, who may begin now."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from clusterctl.fleet.finding import Report
from clusterctl.fleet.node import NodeId
from clusterctl.fleet.state import NodeState
from clusterctl.fleet.waves import Course, Ending, Under, WavePolicy, ending, may_begin, stopped


@dataclass(slots=True)
class Wave:
    """Keeps count for `fleet.waves`. `stopped` says why nobody begins any more; empty while they may."""

    policy: WavePolicy
    machines: int
    now: Callable[[], float] = time.monotonic
    stopped: str = ""
    _running: dict[NodeId, Under] = field(default_factory=dict)
    _ended: dict[NodeId, Ending] = field(default_factory=dict)

    def next(self, waiting: Iterable[NodeState]) -> tuple[NodeId, ...]:
        """Who of them may begin."""
        told = [(state.id, state.location.rack) for state in waiting]
        return may_begin(self.policy, self._course, told, self.now())

    def begin(self, state: NodeState) -> None:
        self._running[state.id] = Under(state.location.rack, self.now())

    def leave(self, node: NodeId) -> None:
        """It is no longer under way, however it ended."""
        self._running.pop(node, None)

    def end(self, node: NodeId, report: Report, *, again: bool) -> str:
        """Count it as its report says; why all stops now, where this was one too many.

        `again`: it is tried once more before it is said to have failed, and counts then; what must not happen twice
        counts at once.
        """
        how = ending(report)
        if again and how is not Ending.RUINED:
            return ""
        self._ended.pop(node, None)
        self._ended[node] = how
        before, self.stopped = self.stopped, self.stopped or stopped(self.policy, self._course)
        return "" if before else self.stopped

    @property
    def _course(self) -> Course:
        return Course(self.machines, self._running, self._ended)
