"""Revalidation of repaired nodes: from the step on that the repair touched, up to gold, beside lent gold nodes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace

from clusterctl.edges.clock import CLOCK
from clusterctl.edges.site import contents
from clusterctl.fleet.decisions.decision import Order
from clusterctl.fleet.decisions.revalidate import repair, revalidate
from clusterctl.fleet.errors import EdgeError, UsageError
from clusterctl.fleet.node import Step
from clusterctl.fleet.partners import ENOUGH
from clusterctl.fleet.state import NodeState
from clusterctl.operations import bootstrap
from clusterctl.operations.bootstrap import RunRequest, RunResult
from clusterctl.operations.context import SiteContext
from clusterctl.operations.gold_pool import publish
from clusterctl.operations.operation import Control, Effect, Event, Preview
from clusterctl.operations.partners import SCHEDULER_S, PartnerLender
from clusterctl.operations.reports import repeated
from clusterctl.operations.runner import claimed
from clusterctl.ports import Deadline
from clusterctl.ports.scheduler import Scheduler, Use

NAME = "revalidate"


@dataclass(frozen=True, slots=True, kw_only=True)
class RevalidateRequest:
    """One node, and what was repaired in it.

    parts      `gpu3`, a slot, a serial, `cable 5`; `reason` serves instead of them
    from_pool  even where it is gold and no scheduler can tell whether it is idle
    partners   gold nodes to measure it with; empty: idle ones that the scheduler lends
    suite      another burn-in suite than the site's
    """

    node: str
    parts: tuple[str, ...] = ()
    reason: str = ""
    from_pool: bool = False
    partners: tuple[str, ...] = ()
    suite: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Plan:
    """`because`: why the suite is another than the site's, where no operator named it."""

    context: SiteContext
    node: NodeState
    order: Order
    partners: tuple[str, ...]
    because: str


def preview(context: SiteContext, request: RevalidateRequest) -> Preview:
    """Return the first step that runs again, and the partners. Raises `UsageError` where it may not be."""
    with closing(context.adapters()) as adapters:
        return _preview(_plan(context, request, adapters.scheduler))


def run(context: SiteContext, request: RevalidateRequest, control: Control) -> RunResult:
    """Order the revalidation and carry it out; partners return to the scheduler, the node only once it is gold."""
    with closing(context.adapters()) as adapters:
        scheduler = adapters.scheduler
        plan = _plan(context, request, scheduler)
        control.require(_preview(plan))
        borrowed = () if request.partners else plan.partners
        with _lent(plan, scheduler, borrowed, control) as lent:
            steps = _order(plan, request)
            publish(plan.context, adapters.pool)
            again = RunRequest(steps=steps, limit=(plan.node.name,), partners=request.partners or lent)
            return bootstrap.run(plan.context, again, Control(None, control.on_event, control.cancelled))


def _preview(plan: _Plan) -> Preview:
    text = f"{plan.order.words}; measured beside {', '.join(plan.partners)}"
    return Preview(operation=NAME, question="Go on?", effects=(Effect(node=plan.node.name, text=text),))


def _plan(context: SiteContext, request: RevalidateRequest, scheduler: Scheduler | None) -> _Plan:
    node = context.node(request.node)
    context, because = _with_suite(context, node, request)
    order = _decide(context, node, request, because)
    _require_idle(node, scheduler, request)
    partners = request.partners or _idle_partners(context, node, scheduler)
    return _Plan(context=context, node=node, order=order, partners=partners, because=because)


def _with_suite(context: SiteContext, node: NodeState, request: RevalidateRequest) -> tuple[SiteContext, str]:
    """Return the site with the suite that the operator named; for a repeat offender with its longer one, and why."""
    usual, longer = context.site.settings.burnin, context.site.settings.offenders.suite
    suite, because = request.suite, ""
    if not suite and longer != usual and (again := repeated(context, node)):
        suite, because = longer, f"by the suite {longer} instead of {usual}, since {again[0]}"
    if not suite:
        return context, ""
    settings = replace(context.site.settings, burnin=suite)
    return replace(context, site=replace(context.site, settings=settings)), because


def _decide(context: SiteContext, node: NodeState, request: RevalidateRequest, because: str) -> Order:
    checks = contents.suite(context.site).required
    return revalidate(node, repair(node, request.parts), request.reason, checks, CLOCK.now(), suite=because)


def _order(plan: _Plan, request: RevalidateRequest) -> tuple[Step, ...]:
    """Write the order on the node as it stands now; return the steps that follow."""
    journal = plan.context.journal
    with claimed(plan.context, [plan.node]) as claims:
        order = _decide(plan.context, journal.state(plan.node.id), request, plan.because)
        journal.append(order.events, claim=claims[plan.node.id])
        since = journal.state(plan.node.id).next_step or Step.BURNIN
    return tuple(list(Step)[list(Step).index(since) :])


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
        raise UsageError(f"a job runs on it: the scheduler says {seen.words}", where=node.name, remedy=remedy)


def _idle_partners(context: SiteContext, node: NodeState, scheduler: Scheduler | None) -> tuple[str, ...]:
    """Return idle gold nodes of its SKU, as many as are needed to tell which node is bad."""
    lender = PartnerLender(context, scheduler, NAME) if scheduler is not None else None
    found = lender.idle_gold({node.sku: ENOUGH - 1}, apart=(node.name,)) if lender is not None else ()
    if not found:
        remedy = "name an idle gold node of its SKU: --partner NODE"
        raise UsageError("no gold node is known to be idle to measure it with", where=node.name, remedy=remedy)
    return found


@contextmanager
def _lent(
    plan: _Plan, scheduler: Scheduler | None, partners: Sequence[str], control: Control
) -> Iterator[tuple[str, ...]]:
    """Keep jobs off the node and its partners; give the partners back at the end, the node only once it is gold."""
    if scheduler is None:
        yield tuple(partners)
        return
    lender, node = PartnerLender(plan.context, scheduler, NAME), plan.node

    def on_stuck(name: str, why: str) -> None:
        control.on_event(Event(node=name, text=f"warning: could not be given back to the scheduler: {why}"))

    try:
        with lender.lend(partners, on_stuck) as (lent, refused):
            if partners and not lent:
                why = "; ".join(f"{name}: {words}" for name, words in refused.items())
                raise EdgeError(f"jobs began on its partners: {why}", where=node.name, remedy="repeat the command")
            if (seen := lender.occupancy().get(node.name)) is not None and seen.use is Use.IDLE:
                _, kept = lender.take([node.name])
                if kept:
                    raise EdgeError(f"a job began on it: {kept[node.name]}", where=node.name, remedy="drain it first")
            yield tuple(lent)
    finally:
        seen = lender.occupancy().get(node.name)
        if seen is not None and seen.ours and plan.context.journal.state(node.id).in_pool(CLOCK.now()):
            for name, why in lender.give_back([node.name]).items():
                on_stuck(name, why)
