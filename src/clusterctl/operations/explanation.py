"""Why a node stands where it stands: cause, remedy, and the evidence that they rest on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from clusterctl.fleet.bmc.accounts import ROTATION, Rotation, rotation
from clusterctl.fleet.finding import Digest, Finding, Origin
from clusterctl.fleet.state import NodeState, NodeSummary
from clusterctl.operations.context import SiteContext
from clusterctl.operations.offenders import repeated
from clusterctl.operations.operation import current_time


@dataclass(frozen=True, slots=True, kw_only=True)
class EvidenceSource:
    """Where a piece of evidence comes from, without its content: `source` was run or read at `where`."""

    source: str
    where: str
    at: datetime
    origin: Origin


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeExplanation:
    """One node and what its stage rests on.

    held      an operator's hold counts at `at`
    evidence  of the node's findings; missing where the journal no longer has it
    password  the last change of its BMC's password; None where clusterctl never changed it
    repeated  sentences about its own and its parts' earlier failures
    """

    node: NodeState
    at: datetime
    held: bool
    evidence: Mapping[Digest, EvidenceSource]
    password: Rotation | None
    repeated: tuple[str, ...]

    @property
    def cause(self) -> str:
        """What keeps the node from going on; empty where nothing does."""
        return cause_of(self.node, self.at)

    @property
    def findings(self) -> tuple[Finding, ...]:
        """The root findings that stopped it."""
        return tuple(self.node.findings)


def cause_of(node: NodeState, now: datetime) -> str:
    """Return what keeps a node from going on; empty where nothing does."""
    hold = str(node.hold) if node.held(now) else ""
    return "; ".join(filter(None, (hold, node.cause)))


def explain(context: SiteContext, node: NodeState, fleet: Sequence[NodeSummary] | None = None) -> NodeExplanation:
    """Return what a node's stage rests on.

    fleet  the nodes, of a caller that knows them; by default they are read
    """
    now = current_time()
    found = context.evidence(digest for finding in node.findings for digest in finding.evidence)
    sources = {
        digest: EvidenceSource(source=item.source, where=item.where, at=item.at, origin=item.origin)
        for digest, item in found.items()
    }
    return NodeExplanation(
        node=node,
        at=now,
        held=node.held(now),
        evidence=sources,
        password=rotation(context.journal.histories([node.id], ROTATION)),
        repeated=tuple(repeated(context, node, fleet)),
    )
