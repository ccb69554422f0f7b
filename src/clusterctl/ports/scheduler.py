"""The scheduler of jobs: which nodes are idle, and nodes that are drained for a while."""

from __future__ import annotations

import enum
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from clusterctl.fleet.finding import Observed
from clusterctl.ports.deadline import Deadline

PREFIX = "clusterctl:"
"""What every reason of ours begins with: `clusterctl:<check>:<event>`. No other drain is ever resumed."""


class Use(enum.Enum):
    """IDLE: no job runs on it, and one may start. OUT: no job may start. UNKNOWN: the state is not known."""

    IDLE = "idle"
    BUSY = "busy"
    OUT = "out"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Occupancy:
    """A scheduler's report of a node. `words`: the scheduler's text; `reason`: why it is out, where it has one."""

    use: Use
    state: str = ""
    reason: str = ""

    @property
    def ours(self) -> bool:
        """True where clusterctl drained it, and the reason has not changed since."""
        return self.use is Use.OUT and self.reason.startswith(PREFIX)


@dataclass(frozen=True, slots=True)
class Draining:
    """How far a drain came.

    out      no job runs on them, and none will begin
    waiting  their jobs still run, as the scheduler's text
    refused  they cannot be drained by us, with the reason
    """

    out: frozenset[str] = frozenset()
    waiting: Mapping[str, str] = field(default_factory=dict)
    refused: Mapping[str, str] = field(default_factory=dict)


class Scheduler(Protocol):
    """Raises only `ClusterctlError`s; an unknown state is UNKNOWN or an error, never IDLE."""

    def look(self, deadline: Deadline) -> Observed[Mapping[str, Occupancy]]:
        """Return all nodes that it knows, by name."""
        ...

    def take(self, nodes: Sequence[str], reason: str, deadline: Deadline) -> Mapping[str, str]:
        """Keep work off idle `nodes`; return the reasons for unavailable ones, which are unchanged."""
        ...

    def drain(self, nodes: Sequence[str], reason: str, deadline: Deadline) -> Draining:
        """Keep new work off `nodes` and let the work that runs come to its end; ask again until all are out."""
        ...

    def relabel(self, node: str, reason: str, deadline: Deadline) -> None:
        """Record another reason for keeping work off `node`; do nothing where the scheduler keeps none."""
        ...

    def give_back(self, nodes: Sequence[str], deadline: Deadline) -> Mapping[str, str]:
        """Let `nodes` have work again, where clusterctl drained them; return the reasons for the others."""
        ...
