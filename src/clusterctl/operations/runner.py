"""The runner of operations on nodes: select → permit → preview → claim → permit again → act → report."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

from clusterctl.fleet.errors import ClaimLostError
from clusterctl.fleet.node import NodeId
from clusterctl.fleet.state import NodeState
from clusterctl.operations.adapters import Adapters
from clusterctl.operations.context import SiteContext
from clusterctl.operations.operation import Control, Effect, Event, Outcome, Preview, Result
from clusterctl.operations.selection import require_bmcs, require_listed, selected
from clusterctl.ports import Claim


class NodeRequest(Protocol):
    """A request about nodes: names and shell patterns."""

    @property
    def nodes(self) -> tuple[str, ...]: ...


RequestT = TypeVar("RequestT", bound=NodeRequest)


@dataclass(frozen=True, slots=True, kw_only=True)
class Work(Generic[RequestT]):
    """All that the `act` of an operation works with; `nodes` are claimed, and as they stand since then."""

    context: SiteContext
    adapters: Adapters
    request: RequestT
    nodes: tuple[NodeState, ...]
    claims: Mapping[NodeId, Claim]
    cancelled: threading.Event


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeOperation(Generic[RequestT]):
    """An operation that acts on nodes, all under claims. With `needs_bmc` it is refused for a node without a BMC.

    question  what an operator approves, from the nodes' names
    check     raises `UsageError` where the request may not be carried out on these nodes
    effect    what is going to happen to one node, in one clause
    act       acts; yields each node's outcome as soon as it is known
    warnings  what the operator must know before approval
    """

    name: str
    question: Callable[[RequestT, Sequence[str]], str]
    check: Callable[[SiteContext, RequestT, Sequence[NodeState]], None]
    effect: Callable[[RequestT, NodeState], str]
    act: Callable[[Work[RequestT]], Iterable[Outcome]]
    warnings: Callable[[SiteContext], tuple[str, ...]] = lambda _context: ()
    needs_bmc: bool = True

    def preview(self, context: SiteContext, request: RequestT) -> Preview:
        """Return what the operation would do. Raises `UsageError` where it may not be done to one of the nodes."""
        return self._preview(context, request, self._nodes(context, request))

    def _preview(self, context: SiteContext, request: RequestT, nodes: Sequence[NodeState]) -> Preview:
        names = [node.name for node in nodes]
        effects = tuple(Effect(node=node.name, text=self.effect(request, node)) for node in nodes)
        return Preview(
            operation=self.name,
            question=self.question(request, names),
            effects=effects,
            warnings=self.warnings(context),
        ).of(request)

    def run(self, context: SiteContext, request: RequestT, control: Control) -> Result:
        """Act on the nodes; return each one's outcome, by name."""
        context = context.reporting(control.waiting)
        chosen = self._nodes(context, request)
        control.require(self._preview(context, request, chosen))
        context.describe()
        nodes = context.named(node.name for node in chosen)
        outcomes = []
        with closing(context.adapters()) as adapters, claimed(context, nodes) as claims:
            fresh = tuple(context.journal.state(node.id) for node in nodes)
            self.check(context, request, fresh)
            work = Work(
                context=context,
                adapters=adapters,
                request=request,
                nodes=fresh,
                claims=claims,
                cancelled=control.cancelled,
            )
            for outcome in self.act(work):
                control.on_event(Event(node=outcome.node, text=outcome.text, failure=outcome.failure))
                outcomes.append(outcome)
        return result(self.name, outcomes, control)

    def _nodes(self, context: SiteContext, request: RequestT) -> list[NodeState]:
        names = selected(context, request.nodes)
        nodes = context.states(names)
        require_listed(context, names)
        if self.needs_bmc:
            require_bmcs(context, names)
        self.check(context, request, nodes)
        return nodes


def result(operation: str, outcomes: Iterable[Outcome], control: Control) -> Result:
    """Return the result of an operation, its outcomes by node name."""
    ordered = tuple(sorted(outcomes, key=lambda outcome: outcome.node))
    return Result(operation=operation, outcomes=ordered, cancelled=control.cancelled.is_set())


@contextmanager
def claimed(context: SiteContext, nodes: Iterable[NodeState]) -> Iterator[Mapping[NodeId, Claim]]:
    """Claim the nodes, all or none, for the time. Raises `ClaimLostError` naming the run that holds one of them."""
    names = {node.id: node.name for node in nodes}
    claims = context.journal.claim(names, context.run)
    try:
        if claims.refused:
            node, holder = next(iter(claims.refused.items()))
            remedy = "wait until that run has finished; nothing was changed on any node"
            raise ClaimLostError(holder, where=names[node], remedy=remedy)
        yield claims.granted
    finally:
        context.journal.release(claims.granted.values())
