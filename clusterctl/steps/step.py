"""What a step is: it takes nodes, acts on the world, and yields what it observed. It decides nothing."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from clusterctl.fleet.event import Kind, NewEvent
from clusterctl.fleet.finding import Evidence, Finding
from clusterctl.fleet.node import NodeId, Verb
from clusterctl.fleet.state import NodeState
from clusterctl.ports import Claim, Deadline, Journal


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a step observed of one node. `facts` are events about it (identity, address) to write with the report."""

    node: NodeId
    findings: tuple[Finding, ...]
    evidence: tuple[Evidence, ...] = ()
    facts: tuple[NewEvent, ...] = ()
    suite: str = ""


class Acts:
    """Side effects are intended in the journal before they happen, under the node's claim."""

    def __init__(self, journal: Journal, claims: Mapping[NodeId, Claim]) -> None:
        self._journal = journal
        self._claims = claims

    def intend(self, node: NodeId, act: str, target: str) -> None:
        """Write that `act` is about to be done to `target`; raises `ClaimLostError` when the node is no longer ours."""
        self.note(node, Kind.ACT_INTENDED, {"act": act, "target": target})

    def observed(self, node: NodeId, act: str, result: str) -> None:
        """Write what came of it."""
        self.note(node, Kind.ACT_OBSERVED, {"act": act, "result": result})

    def note(self, node: NodeId, kind: Kind, data: Mapping[str, str]) -> None:
        """Write a fact that must be durable before the next side effect."""
        self._journal.append([NewEvent("node", node, kind, data)], claim=self._claims[node])


class Step(Protocol):
    """A verb on many nodes at once.

    minimum    how many nodes it wants together (burn-in pairs need two); fewer are run when no more can come
    linger_s   how long to wait for more nodes before starting on those that are there
    """

    @property
    def verb(self) -> Verb: ...
    @property
    def minimum(self) -> int: ...
    @property
    def linger_s(self) -> float: ...
    def run(self, nodes: Sequence[NodeState], acts: Acts, deadline: Deadline) -> Iterator[Outcome]:
        """Yield each node's outcome as soon as it is known. Nodes that are not yielded count as unmeasured."""
        ...


def with_evidence(findings: Iterable[Finding], evidence: Sequence[Evidence]) -> tuple[Finding, ...]:
    """The findings, each pointing at all of `evidence` unless it names its own."""
    digests = tuple(item.digest for item in evidence)
    return tuple(finding if finding.evidence else replace(finding, evidence=digests) for finding in findings)


def node_event(node: NodeId, kind: Kind, **data: object) -> NewEvent:
    return NewEvent("node", node, kind, data)
