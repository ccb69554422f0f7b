"""Proving one node anew: decided, asked, written down, then run beside gold nodes that are lent for it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace

import click

from clusterctl.edges.site import contents
from clusterctl.fleet.decisions.decision import Order
from clusterctl.fleet.decisions.revalidate import repair, revalidate
from clusterctl.fleet.errors import EdgeError, UsageError
from clusterctl.fleet.node import Step
from clusterctl.fleet.state import NodeState
from clusterctl.operations.adapters import Edges, Outside
from clusterctl.operations.bootstrap import Order as Conduct
from clusterctl.operations.bootstrap import conduct
from clusterctl.operations.context import CLOCK, Office
from clusterctl.operations.decisions import Manner, claimed
from clusterctl.operations.offending import repeated
from clusterctl.operations.pool import gold_pool, publish
from clusterctl.operations.scheduling import scheduler_of
from clusterctl.ports import Deadline
from clusterctl.ports.scheduler import PREFIX, Scheduler, Use
from clusterctl.steps.burnin.partners import ENOUGH
from clusterctl_cli import render

SCHEDULER_S = 300.0


@dataclass(frozen=True, slots=True)
class Anew:
    """What the person said."""

    node: str
    parts: tuple[str, ...]
    reason: str
    from_pool: bool
    partners: tuple[str, ...]
    suite: str = ""
    because: str = ""
    """The suite and why it is another than the site's, where no person said so."""


def revalidate_node(
    office: Office,
    anew: Anew,
    manner: Manner,
    lender: Scheduler | None = None,
    outside: Callable[[], Outside] | None = None,
) -> int:
    """Order it and carry it out; the exit code. `lender` and `outside`: instead of the site's own."""
    office, anew = _suited(office, anew)
    scheduler = lender or (scheduler_of(office.site) if office.site.settings.scheduler is not None else None)
    node = office.node(anew.node)
    order = _decide(office, node, anew)
    _require_idle(node, scheduler, anew)
    partners = anew.partners or _idle_partners(office, node, scheduler)
    words = f"{node.name}: {order.words}; measured beside {', '.join(partners)}"
    if manner.dry_run:
        _tell(node, words, manner)
        return 0
    if not manner.yes:
        click.confirm(f"{words}\nGo on?", abort=True, err=True)
    with _lent(office, scheduler, node, () if anew.partners else partners) as lent:
        way = _order(office, node, anew)
        asked = Conduct(way, (node.name,), anew.partners or lent, yes=True, as_json=manner.as_json)
        return conduct(office, outside() if outside is not None else Edges(office.site), asked)


def _suited(office: Office, anew: Anew) -> tuple[Office, Anew]:
    """The site with the suite that a person named; else, for a repeat offender, with the longer one of such."""
    usual, longer = office.site.settings.burnin, office.site.settings.offenders.suite
    if not anew.suite and longer != usual and (again := repeated(office, office.node(anew.node))):
        anew = replace(anew, suite=longer, because=f"by the suite {longer} instead of {usual}, since {again[0]}")
    if not anew.suite:
        return office, anew
    settings = replace(office.site.settings, burnin=anew.suite)
    return replace(office, site=replace(office.site, settings=settings)), anew


def _decide(office: Office, node: NodeState, anew: Anew) -> Order:
    checks = contents.suite(office.site).required
    return revalidate(node, repair(node, anew.parts), anew.reason, checks, CLOCK.now(), suite=anew.because)


def _order(office: Office, node: NodeState, anew: Anew) -> tuple[str, ...]:
    """Written down on the node as it stands now; the steps of its way."""
    with claimed(office, [node]) as claims:
        order = _decide(office, office.journal.state(node.id), anew)
        office.journal.append(order.events, claim=claims[node.id])
        publish(office, gold_pool(office.site))
    since = Step(order.events[0].data["since"])
    return tuple(step.value for step in list(Step)[list(Step).index(since) :])


def _require_idle(node: NodeState, scheduler: Scheduler | None, anew: Anew) -> None:
    """Nobody computes on it."""
    if scheduler is None:
        if node.in_pool(CLOCK.now()) and not anew.from_pool:
            remedy = "let its work end, then say --from-pool; or name the site's scheduler in site.yml"
            raise UsageError(
                "it is gold and in the pool: somebody may be working on it", where=node.name, remedy=remedy
            )
        return
    seen = scheduler.look(_soon()).value.get(node.name)
    if seen is not None and seen.use is Use.BUSY:
        remedy = "drain it, let its work end, then say the same again"
        raise UsageError(f"somebody works on it: the scheduler says {seen.words}", where=node.name, remedy=remedy)


def _idle_partners(office: Office, node: NodeState, scheduler: Scheduler | None) -> tuple[str, ...]:
    """Idle gold nodes of its SKU, as many as tell who is to blame."""
    seen = scheduler.look(_soon()).value if scheduler is not None else {}
    idle = {name for name, one in seen.items() if one.use is Use.IDLE}
    now = CLOCK.now()
    named = {one.name for one in office.site.nodes} - {node.name}
    gold = [one.name for one in office.journal.summaries() if one.in_pool(now) and one.sku == node.sku]
    found = tuple(name for name in gold if name in idle & named)[: ENOUGH - 1]
    if not found:
        remedy = "name an idle gold node of its SKU: --partner NODE"
        raise UsageError("nobody is known to be idle to measure it with", where=node.name, remedy=remedy)
    return found


@contextmanager
def _lent(
    office: Office, scheduler: Scheduler | None, node: NodeState, partners: Sequence[str]
) -> Iterator[tuple[str, ...]]:
    """The node and its partners out of work; the partners get it again, the node only once it is gold."""
    if scheduler is None:
        yield tuple(partners)
        return
    reason = f"{PREFIX}revalidate:{office.run}"
    refused = scheduler.take(partners, reason, _soon()) if partners else {}
    lent = tuple(name for name in partners if name not in refused)
    try:
        if partners and not lent:
            why = "; ".join(f"{name}: {words}" for name, words in refused.items())
            raise EdgeError(f"its partners got work meanwhile: {why}", where=node.name, remedy="say the same again")
        seen = scheduler.look(_soon()).value.get(node.name)
        if seen is not None and seen.use is Use.IDLE:
            kept = scheduler.take([node.name], reason, _soon())
            if kept:
                raise EdgeError(f"it got work meanwhile: {kept[node.name]}", where=node.name, remedy="drain it first")
        yield lent
    finally:
        _return(office, scheduler, node, lent)


def _return(office: Office, scheduler: Scheduler, node: NodeState, lent: Sequence[str]) -> None:
    names = list(lent)
    seen = scheduler.look(_soon()).value.get(node.name)
    if seen is not None and seen.ours and office.journal.state(node.id).in_pool(CLOCK.now()):
        names.append(node.name)
    for name, why in scheduler.give_back(names, _soon()).items():
        click.echo(f"warning: {name} could not be given back: {why}", err=True)


def _soon() -> Deadline:
    return Deadline.after(SCHEDULER_S)


def _tell(node: NodeState, words: str, manner: Manner) -> None:
    """`{"decisions": [{"name":…, "words":…}], "dry_run": true, "nodes": […]}`, or words."""
    if manner.as_json:
        decisions = [{"name": node.name, "words": words}]
        click.echo(
            json.dumps({"decisions": decisions, "dry_run": True, "nodes": [render.node_json(node, CLOCK.now())]})
        )
        return
    click.echo(f"{words}\n\nNothing was changed.")
