"""The scheduler of jobs: which nodes are idle, and nodes that are drained for a while."""

from __future__ import annotations

import enum
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Protocol

from clusterctl.fleet.finding import Observed
from clusterctl.ports.deadline import Deadline

PREFIX = "clusterctl:"
"""What every reason of ours begins with: `clusterctl:<check>:<event>`. No other drain is ever resumed."""
_LENT = re.compile(r"clusterctl:[^\s:]+:\S+")
_FOR_A_FAULT = re.compile(r"clusterctl:(?:job:\S+|[a-z0-9_]{1,64}:\d{8}T\d{6}Z)")
"""The drains of supervised jobs, and those of the nodes themselves (clusterctl_burnin/node_check/slurm.py)."""


def is_returnable(reason: str) -> bool:
    """Return whether a run of clusterctl drained a node for its own work, so that a run may lift the drain.

    A drain for a fault, by a node's own check or a supervised job, is lifted by an operator alone, or once a reported
    repair is proven. A text with spaces is an operator's, whatever it begins with. Slurm itself adds to a reason
    behind ` : ` (`reboot complete`).
    """
    given = reason.partition(" : ")[0]
    return bool(_LENT.fullmatch(given)) and not _FOR_A_FAULT.fullmatch(given)


def is_for_a_fault(reason: str) -> bool:
    """Return whether a supervised job or a node's own check drained a node for a fault."""
    return bool(_FOR_A_FAULT.fullmatch(reason))


RESERVED = "reserved"
"""State of a node that is idle, and reserved: sinfo(1)."""


class Use(enum.Enum):
    """IDLE: no job runs on it, and one may start. OUT: no job may start. UNKNOWN: the state is not known."""

    IDLE = "idle"
    BUSY = "busy"
    OUT = "out"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Occupancy:
    """A scheduler's report of a node.

    state    the scheduler's text
    reason   why it is out, where it has one
    leaving  work runs on it, and no more begins: it is out once that ends
    """

    use: Use
    state: str = ""
    reason: str = ""
    leaving: bool = False

    @property
    def closed(self) -> bool:
        """True where no work begins on it until someone gives it back, or its reservation ends."""
        return self.use is Use.OUT or self.leaving

    @property
    def ours(self) -> bool:
        """True where clusterctl drained it, and the reason has not changed since."""
        return self.use is Use.OUT and self.reason.startswith(PREFIX)

    @property
    def returnable(self) -> bool:
        """True where a run of clusterctl drained it for its own work."""
        return self.use is Use.OUT and is_returnable(self.reason)


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

    def give_back(self, nodes: Sequence[str], deadline: Deadline, fault: str = "") -> Mapping[str, str]:
        """Let `nodes` have work again, where clusterctl drained them; return the reasons for the others.

        A drain for a fault stays, but for one with the reason `fault`, where the scheduler keeps reasons.
        """
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeBoot:
    """A node whose reboot is ordered through the scheduler, or may be.

    use       as of `Occupancy`
    state     the scheduler's text
    reason    why it gets no work; empty where it does
    pending   a reboot is ordered, or goes on
    down      it gets no work until it is resumed: how a reboot of ours ends
    answers   its daemon answers the scheduler
    booted    its last boot; None where the scheduler does not have it
    """

    use: Use
    state: str
    reason: str = ""
    pending: bool = False
    down: bool = False
    answers: bool = True
    booted: datetime | None = None

    @property
    def ours(self) -> bool:
        """True where clusterctl keeps work off the node."""
        return self.reason.startswith(PREFIX)


class Reboots(Protocol):
    """Reboots by the scheduler's own daemon on the node. Raises only `ClusterctlError`s."""

    def nodes(self, deadline: Deadline) -> Mapping[str, NodeBoot]:
        """Return all nodes that the scheduler knows, by name."""
        ...

    def reboot(self, node: str, deadline: Deadline) -> None:
        """Order the reboot of a drained node, which is down afterwards until `resume`; its reason stays."""
        ...

    def resume(self, node: str, deadline: Deadline) -> None:
        """Let a node that is down after its reboot have work again."""
        ...
