"""What a step is: it takes nodes, acts on the world, and yields what it observed. It decides nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Protocol

from clusterctl.fleet.errors import ClaimLostError
from clusterctl.fleet.event import Kind, NewEvent
from clusterctl.fleet.finding import Evidence, Finding
from clusterctl.fleet.node import NodeId, Step
from clusterctl.fleet.state import NodeState
from clusterctl.ports import Claim, Deadline, Journal
from clusterctl.steps.executor.lease import Lease


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a step observed of one node. `facts` are events about it (identity, address) to write with the report."""

    node: NodeId
    findings: tuple[Finding, ...]
    evidence: tuple[Evidence, ...] = ()
    facts: tuple[NewEvent, ...] = ()
    suite: str = ""


def _tell_nobody(_node: NodeId, _words: str) -> None:
    """Where nobody watches."""


class IntentLog:
    """Side effects are intended in the journal before they happen, under the node's claim, and fenced while they do."""

    def __init__(
        self, journal: Journal, claims: Mapping[NodeId, Claim], tell: Callable[[NodeId, str], None] = _tell_nobody
    ) -> None:
        """`tell`: called with what a node said of itself meanwhile, for whoever watches."""
        self._journal = journal
        self._tell = tell
        self.lease = Lease(journal, claims)

    def intend(self, node: NodeId, act: str, target: str) -> None:
        """Write that `act` is about to be done to `target`; raises `ClaimLostError` when the node is no longer ours."""
        self.note(node, Kind.ACT_INTENDED, {"act": act, "target": target})

    def fenced(self, nodes: Iterable[NodeId], deadline: Deadline) -> Deadline:
        """The deadline to act on `nodes` with: the edge looks at it before each request, and stops when one is lost.

        Between intent and effect the controller may have slept for hours, and the nodes be another's.
        """
        return deadline.fenced(self.lease.fence(nodes))

    def observed(self, node: NodeId, act: str, result: str) -> None:
        """Write what came of it."""
        self.note(node, Kind.ACT_OBSERVED, {"act": act, "result": result})

    def progress(self, node: NodeId, at: datetime, words: str) -> None:
        """Write what a machine told of its install, and when."""
        self.note(node, Kind.INSTALL_PROGRESS, {"at": at.isoformat(), "words": words})
        self._tell(node, words)

    def note(self, node: NodeId, kind: Kind, data: Mapping[str, str]) -> None:
        """Write a fact that must be durable before the next side effect."""
        try:
            self._journal.append([NewEvent("node", node, kind, data)], claim=self.lease.claim(node))
        except ClaimLostError as error:
            self.lease.lose(node, error.message)
            raise


class StepRunner(Protocol):
    """Takes one step on many nodes at once.

    minimum    how many nodes it wants together (burn-in pairs need two); fewer are run when no more can come
    linger_s   how long to wait for more nodes before starting on those that are there
    at_once    how many of its batches may run at the same time; whoever comes meanwhile makes the next one larger
    """

    @property
    def step(self) -> Step: ...
    @property
    def minimum(self) -> int: ...
    @property
    def linger_s(self) -> float: ...
    @property
    def at_once(self) -> int: ...
    def run(self, nodes: Sequence[NodeState], acts: IntentLog, deadline: Deadline) -> Iterator[Outcome]:
        """Yield each node's outcome as soon as it is known. Nodes that are not yielded count as unmeasured."""
        ...


def with_evidence(findings: Iterable[Finding], evidence: Sequence[Evidence]) -> tuple[Finding, ...]:
    """The findings, each pointing at all of `evidence` unless it names its own."""
    digests = tuple(item.digest for item in evidence)
    return tuple(finding if finding.evidence else replace(finding, evidence=digests) for finding in findings)


def node_event(node: NodeId, kind: Kind, **data: object) -> NewEvent:
    return NewEvent("node", node, kind, data)
