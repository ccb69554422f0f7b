"""Revalidation of repaired nodes: from the step on that the repair touched, up to gold, with gold nodes as partners."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field, replace

from clusterctl.edges.clock import CLOCK
from clusterctl.edges.site import contents
from clusterctl.fleet.decisions.decision import Order
from clusterctl.fleet.decisions.revalidate import repair, revalidate
from clusterctl.fleet.errors import EdgeError, UsageError
from clusterctl.fleet.event import Kind
from clusterctl.fleet.node import Step
from clusterctl.fleet.partners import ENOUGH
from clusterctl.fleet.payloads.decisions import RevalidationOrdered
from clusterctl.fleet.state import NodeState
from clusterctl.operations import bootstrap
from clusterctl.operations.bootstrap import RunRequest, RunResult
from clusterctl.operations.context import SiteContext
from clusterctl.operations.gold_pool import publish
from clusterctl.operations.offenders import repeated
from clusterctl.operations.operation import Control, Effect, Event, Preview
from clusterctl.operations.partners import SCHEDULER_S, PartnerLender
from clusterctl.operations.runner import claimed
from clusterctl.operations.selection import selected
from clusterctl.ports import Deadline
from clusterctl.ports.scheduler import Scheduler, Use, is_for_a_fault

NAME = "revalidate"


@dataclass(frozen=True, slots=True, kw_only=True)
class RevalidateRequest:
    """Nodes, by name and pattern, and what was repaired in each of them.

    parts      `gpu3`, a slot, a serial, `cable 5`; `reason` serves instead of them
    from_pool  even a gold node that no scheduler reports as idle
    partners   gold nodes to measure them with; empty: idle ones that the scheduler lends
    suite      another burn-in suite than the site's
    lifts      reason of a drain for a fault that is lifted, too, once the node is gold. Empty: where `parts` were
               repaired, it is the reason that the node has; else an operator lifts it
    """

    nodes: tuple[str, ...]
    parts: tuple[str, ...] = ()
    reason: str = ""
    from_pool: bool = False
    partners: tuple[str, ...] = ()
    suite: str = ""
    lifts: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Plan:
    """`lifts`: the drain for a fault that is lifted, by node.

    `because`: why the suite is another than the site's, where no operator named it.
    """

    context: SiteContext
    nodes: tuple[NodeState, ...]
    orders: tuple[Order, ...]
    partners: tuple[str, ...]
    because: str
    lifts: Mapping[str, str] = field(default_factory=dict)

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(node.name for node in self.nodes)


def preview(context: SiteContext, request: RevalidateRequest) -> Preview:
    """Return the first step that runs again on each node, and the partners. Raises `UsageError` where it may not be."""
    with closing(context.adapters()) as adapters:
        return _preview(_plan(context, request, adapters.scheduler), request)


def run(context: SiteContext, request: RevalidateRequest, control: Control) -> RunResult:
    """Order the revalidation, once in a run, and carry it out; partners return to the scheduler, a node only once it
    is gold.
    """
    with closing(context.adapters()) as adapters:
        scheduler = adapters.scheduler
        plan = _plan(context, request, scheduler)
        control.require(_preview(plan, request))
        borrowed = () if request.partners else plan.partners
        with _lent(plan, scheduler, borrowed, control) as lent:
            steps = _order(plan, request)
            publish(plan.context.journal, adapters.pool)
            again = RunRequest(steps=steps, limit=plan.names, partners=request.partners or lent)
            return bootstrap.run(plan.context, again, Control(None, control.on_event, control.cancelled))


def first_step(context: SiteContext, request: RevalidateRequest) -> Step:
    """Return the earliest step that runs again on one of the nodes. Raises `UsageError` as `preview`; asks no machine.

    From `discover` or `install` on, a root disk may be overwritten.
    """
    nodes = tuple(context.named(selected(context, request.nodes)))
    context, because = _with_suite(context, nodes, request)
    decided = [event.payload for node in nodes for event in _decide(context, node, request, because).events]
    steps = [payload.since for payload in decided if isinstance(payload, RevalidationOrdered)]
    return min(steps, key=list(Step).index)


def _preview(plan: _Plan, request: RevalidateRequest) -> Preview:
    effects = tuple(
        Effect(
            node=order.node.name,
            text=f"{order.effect}; measured with {', '.join(plan.partners)}{_lifting(plan, order)}",
        )
        for order in plan.orders
    )
    return Preview(operation=NAME, question="Go on?", effects=effects).of(request)


def _lifting(plan: _Plan, order: Order) -> str:
    reason = plan.lifts.get(order.node.name, "")
    return f"; once it is gold, its drain {reason} is lifted" if reason else ""


def _plan(context: SiteContext, request: RevalidateRequest, scheduler: Scheduler | None) -> _Plan:
    nodes = tuple(context.named(selected(context, request.nodes)))
    context, because = _with_suite(context, nodes, request)
    new = _without_order(context, nodes)
    orders = tuple(_decide(context, node, request, because) for node in new)
    for node in new:
        _require_idle(node, scheduler, request)
    if len(new) < len(nodes) and scheduler is not None:
        _return_partners(context, scheduler, nodes)
    partners = request.partners or _idle_partners(context, nodes, scheduler)
    lifts = _lifted(nodes, scheduler, request)
    return _Plan(context=context, nodes=nodes, orders=orders, partners=partners, because=because, lifts=lifts)


def _without_order(context: SiteContext, nodes: Sequence[NodeState]) -> tuple[NodeState, ...]:
    """Return the nodes that this run has not ordered yet: all, but where another process began it before."""
    before = context.ordered_here([node.id for node in nodes], Kind.REVALIDATION_ORDERED)
    return tuple(node for node in nodes if node.id not in before)


def _return_partners(context: SiteContext, scheduler: Scheduler, nodes: Sequence[NodeState]) -> None:
    """Give back the partners that this run had lent when its process was lost: it may choose them again."""
    lender = PartnerLender(context, scheduler, NAME)
    lender.give_back(sorted(lender.lent() - {node.name for node in nodes}))


def _lifted(nodes: Sequence[NodeState], scheduler: Scheduler | None, request: RevalidateRequest) -> Mapping[str, str]:
    """Return the drain for a fault that is lifted once a node is gold, by its name."""
    if request.lifts or scheduler is None or not request.parts:
        return {node.name: request.lifts for node in nodes if request.lifts}
    seen = scheduler.look(Deadline.after(SCHEDULER_S)).value
    reasons = {node.name: seen[node.name].reason for node in nodes if node.name in seen and seen[node.name].ours}
    return {name: reason for name, reason in reasons.items() if is_for_a_fault(reason)}


def _with_suite(
    context: SiteContext, nodes: Sequence[NodeState], request: RevalidateRequest
) -> tuple[SiteContext, str]:
    """Return the site with the suite that the operator named; with its longer one, and why, where one of the nodes is a
    repeat offender.
    """
    usual, longer = context.site.settings.burnin, context.site.settings.offenders.suite
    suite, because = request.suite, ""
    if not suite and longer != usual:
        for node in nodes:
            if again := repeated(context, node):
                repetition = again[0] if len(nodes) == 1 else f"{node.name} was {again[0]}"
                suite, because = longer, f"by the suite {longer} instead of {usual}, since {repetition}"
                break
    if not suite:
        return context, ""
    settings = replace(context.site.settings, burnin=suite)
    context = replace(context, site=replace(context.site, settings=settings))
    try:
        contents.suite(context.site)
    except UsageError as error:
        if not because:
            raise
        remedy = f"{error.remedy}; or name the usual suite: --suite {usual}"
        raise UsageError(f"the node is tested {because}: {error.message}", where=error.where, remedy=remedy) from error
    return context, because


def _decide(context: SiteContext, node: NodeState, request: RevalidateRequest, because: str) -> Order:
    checks = contents.suite(context.site).required
    return revalidate(node, repair(node, request.parts), request.reason, checks, CLOCK.now(), suite=because)


def _order(plan: _Plan, request: RevalidateRequest) -> tuple[Step, ...]:
    """Write the orders on the nodes as they stand now, all or none; return the steps that follow."""
    journal = plan.context.journal
    with claimed(plan.context, plan.nodes) as claims:
        new = [journal.state(node.id) for node in _without_order(plan.context, plan.nodes)]
        for order in [_decide(plan.context, node, request, plan.because) for node in new]:
            journal.append(order.events, claim=claims[order.node.id])
        since = [journal.state(node.id).next_step or Step.BURNIN for node in plan.nodes]
    steps = list(Step)
    return tuple(steps[min(map(steps.index, since)) :])


def _require_idle(node: NodeState, scheduler: Scheduler | None, request: RevalidateRequest) -> None:
    """Raise `UsageError` where a job may run on the node."""
    if scheduler is None:
        if node.in_pool(CLOCK.now()) and not request.from_pool:
            remedy = "let its work end, then pass --from-pool; or name the site's scheduler in site.yml"
            raise UsageError("it is gold and in the pool: a job may run on it", where=node.name, remedy=remedy)
        return
    seen = scheduler.look(Deadline.after(SCHEDULER_S)).value.get(node.name)
    if seen is not None and seen.use is Use.BUSY:
        remedy = "drain it, let its work end, then repeat the command"
        raise UsageError(f"a job runs on it: the scheduler reports {seen.state}", where=node.name, remedy=remedy)


def _idle_partners(context: SiteContext, nodes: Sequence[NodeState], scheduler: Scheduler | None) -> tuple[str, ...]:
    """Return idle gold nodes of each SKU, as many as are needed to identify the bad node."""
    lender = PartnerLender(context, scheduler, NAME) if scheduler is not None else None
    needed = dict.fromkeys((node.sku for node in nodes), ENOUGH - 1)
    found = lender.idle_gold(needed, apart=tuple(node.name for node in nodes)) if lender is not None else ()
    if not found:
        remedy = "name an idle gold node of its SKU: --partner NODE"
        raise UsageError("no gold node is known to be idle to measure it with", where=nodes[0].name, remedy=remedy)
    return found


@contextmanager
def _lent(
    plan: _Plan, scheduler: Scheduler | None, partners: Sequence[str], control: Control
) -> Iterator[tuple[str, ...]]:
    """Keep jobs off the nodes and their partners; give the partners back at the end, a node only once it is gold."""
    if scheduler is None:
        yield tuple(partners)
        return
    lender = PartnerLender(plan.context, scheduler, NAME)

    def on_stuck(name: str, why: str) -> None:
        control.on_event(Event(node=name, text=f"warning: could not be given back to the scheduler: {why}"))

    try:
        with lender.lend(partners, on_stuck) as (lent, refused):
            if partners and not lent:
                why = "; ".join(f"{name}: {words}" for name, words in refused.items())
                raise EdgeError(f"jobs began on its partners: {why}", where=plan.names[0], remedy="repeat the command")
            _take_idle(plan, lender)
            yield tuple(lent)
    finally:
        for name, why in _give_back_gold(plan, lender).items():
            on_stuck(name, why)


def _give_back_gold(plan: _Plan, lender: PartnerLender) -> Mapping[str, str]:
    """Give the nodes that are gold now back to the scheduler; return those that stay with us, with the reason."""
    seen = lender.occupancy()
    gold = [node.name for node in plan.nodes if plan.context.journal.state(node.id).in_pool(CLOCK.now())]
    ours = [name for name in gold if name in seen and seen[name].ours]
    kept: dict[str, str] = {}
    for fault in dict.fromkeys(plan.lifts.get(name, "") for name in ours):
        kept |= lender.give_back([name for name in ours if plan.lifts.get(name, "") == fault], fault)
    return kept


def _take_idle(plan: _Plan, lender: PartnerLender) -> None:
    """Keep jobs off those nodes that are idle. Raises `EdgeError` where a job began on one."""
    seen = lender.occupancy()
    idle = [name for name in plan.names if name in seen and seen[name].use is Use.IDLE]
    if not idle:
        return
    _, kept = lender.take(idle)
    for name, why in kept.items():
        raise EdgeError(f"a job began on it: {why}", where=name, remedy="drain it first")
