"""What a step is: it takes nodes, acts on the world, and yields what it observed. The gate decides."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from clusterctl.fleet.event import NewEvent
from clusterctl.fleet.finding import Evidence, Finding
from clusterctl.fleet.node import NodeId, Step
from clusterctl.fleet.state import NodeState
from clusterctl.ports import Deadline
from clusterctl.steps.executor.intent_log import IntentLog


@dataclass(frozen=True, slots=True)
class StepOutcome:
    """What a step observed of one node. `facts` are events about it (identity, address) to write with the report."""

    node: NodeId
    findings: tuple[Finding, ...]
    evidence: tuple[Evidence, ...] = ()
    facts: tuple[NewEvent, ...] = ()
    suite: str = ""

    @classmethod
    def of(cls, node: NodeState, finding: Finding, evidence: tuple[Evidence, ...] = ()) -> StepOutcome:
        """Return the outcome with one finding, which rests on all of `evidence`."""
        return cls(node.id, with_evidence([finding], evidence), evidence)


class StepRunner(Protocol):
    """Takes one step on many nodes at once.

    minimum    how many nodes it wants together (burn-in pairs need two); fewer are run when no more can come
    linger_s   how long to wait for more nodes before starting on those that are there
    at_once    how many of its batches may run at the same time; nodes that come meanwhile make the next one larger
    """

    @property
    def step(self) -> Step: ...
    @property
    def minimum(self) -> int: ...
    @property
    def linger_s(self) -> float: ...
    @property
    def at_once(self) -> int: ...
    def run(self, nodes: Sequence[NodeState], intents: IntentLog, deadline: Deadline) -> Iterator[StepOutcome]:
        """Yield each node's outcome as soon as it is known. Nodes that are not yielded count as unmeasured."""
        ...


def with_evidence(findings: Iterable[Finding], evidence: Sequence[Evidence]) -> tuple[Finding, ...]:
    """Return the findings, each pointing at all of `evidence` unless it names its own."""
    digests = tuple(item.digest for item in evidence)
    return tuple(finding if finding.evidence else replace(finding, evidence=digests) for finding in findings)
