"""Operators' decisions about nodes: hold, release, quarantine, waive, merge, retire.

All decisions are sound and all nodes are free, or nothing is written.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial

from clusterctl.edges.clock import CLOCK
from clusterctl.fleet.decisions import decision as orders
from clusterctl.fleet.decisions import identity as orders_identity
from clusterctl.fleet.decisions.decision import Order
from clusterctl.fleet.decisions.waiver import LONGEST
from clusterctl.fleet.durations import FORMS, parse_until
from clusterctl.fleet.errors import UsageError
from clusterctl.fleet.node import Serial, Step
from clusterctl.fleet.state import NodeState
from clusterctl.operations import notify
from clusterctl.operations.context import SiteContext
from clusterctl.operations.gold_pool import gold_pool, publish
from clusterctl.operations.operation import Control, Effect, Outcome, Preview, Result
from clusterctl.operations.runner import claimed, result
from clusterctl.operations.selection import selected
from clusterctl.operations.site_facts import forget_host_key

Decide = Callable[[NodeState], Order]
"""From a node as it stands to a decision about it; raises `UsageError` where it is not permitted."""


class Decision(enum.Enum):
    """What is decided."""

    HOLD = "hold"
    RELEASE = "release"
    REPAIRED = "repaired"
    QUARANTINE = "quarantine"
    WAIVE = "waive"
    REVOKE = "revoke"
    MERGE = "merge"
    RETIRE = "retire"


@dataclass(frozen=True, slots=True, kw_only=True)
class DecisionRequest:
    """`nodes`: names and patterns; the other fields serve the decisions that their lines name.

    until        hold, waive: `2026-12-01`, `12h`, `3d`; empty: until released
    part, step   quarantine: the part to blame; the step that a release leads back to
    check, part  waive, revoke: the check, and the part that it is waived on
    part, serial repaired: the part, where not the one to blame alone; the serial of the new one
    serial       merge: the serial that the node's last discover read
    moved_from   merge: the node that was this machine so far
    """

    decision: Decision
    nodes: tuple[str, ...]
    reason: str
    until: str = ""
    part: str = ""
    step: str = ""
    check: str = ""
    serial: str = ""
    moved_from: str = ""


def preview(context: SiteContext, request: DecisionRequest) -> Preview:
    """Return what is decided about each node."""
    return _preview(context, request, _names(context, request))


def _preview(context: SiteContext, request: DecisionRequest, names: Sequence[str]) -> Preview:
    decide = _decide(context, request)
    decisions = [decide(node) for node in context.states(names)]
    return Preview(
        operation=request.decision.value,
        question="Go on?",
        effects=tuple(Effect(node=item.node.name, text=item.effect) for item in decisions),
        warnings=_sheet_warnings(context, request),
    ).of(request)


def run(context: SiteContext, request: DecisionRequest, control: Control) -> Result:
    """Decide about the nodes as they stand once they are claimed, write it and publish the gold pool."""
    names = _names(context, request)
    control.require(_preview(context, request, names))
    if not {*names} <= {node.name for node in context.journal.summaries()}:
        context.describe()
    nodes = context.states(names)
    also = [name for name in (request.moved_from,) if name and name not in names]
    with claimed(context, [*nodes, *context.named(also)]) as claims:
        decide = _decide(context, request)
        decisions = [decide(context.journal.state(node.id)) for node in nodes]
        for item in decisions:
            context.journal.append(item.events, claim=claims[item.node.id])
            if request.decision is Decision.RETIRE:
                forget_host_key(context.site, item.node.name)
        publish(context.journal, gold_pool(context.site))
    notify.after_run(context)
    return result(request.decision.value, [_outcome(context, item) for item in decisions], control)


def _outcome(context: SiteContext, item: Order) -> Outcome:
    node = context.journal.state(item.node.id)
    stopped_at = node.stopped_at.value if node.stopped_at else None
    values = {
        "stage": node.stage.value,
        "cause": node.cause,
        "stopped_at": stopped_at,
        "stopped_by": node.stopped_by or None,
    }
    return Outcome(node=node.name, text=item.effect, values=values)


def _names(context: SiteContext, request: DecisionRequest) -> list[str]:
    if request.decision is Decision.REPAIRED and request.serial and len(request.nodes) != 1:
        raise UsageError("one part is in one node", where="--serial", remedy="name one node with its new part")
    if request.decision in (Decision.MERGE, Decision.RETIRE):
        (name,) = request.nodes
        return [context.node(name).name]
    return selected(context, request.nodes)


def _decide(context: SiteContext, request: DecisionRequest) -> Decide:  # noqa: PLR0911 — one per decision
    reason = request.reason
    match request.decision:
        case Decision.HOLD:
            return partial(orders.hold, reason=reason, until=_until(request.until))
        case Decision.RELEASE:
            return partial(orders.release, reason=reason)
        case Decision.REPAIRED:
            return partial(orders.repaired, done=reason, part=request.part, serial=request.serial)
        case Decision.QUARANTINE:
            step = Step(request.step) if request.step else None
            return partial(orders.quarantine, reason=reason, part=request.part, step=step)
        case Decision.WAIVE:
            until = parse_until(_required_until(request), CLOCK.now(), longest=LONGEST)
            return partial(orders.waive, check=request.check, subject=request.part, reason=reason, until=until)
        case Decision.REVOKE:
            return partial(orders.revoke, check=request.check, subject=request.part, reason=reason)
        case Decision.MERGE:
            moved = context.node(request.moved_from) if request.moved_from else None
            fleet = context.journal.summaries()
            return lambda node: orders_identity.merge(node, Serial(request.serial), reason, fleet, moved)
        case Decision.RETIRE:
            return partial(orders_identity.retire, reason=reason)


def _until(text: str) -> datetime | None:
    return parse_until(text, CLOCK.now()) if text else None


def _required_until(request: DecisionRequest) -> str:
    if not request.until:
        raise UsageError("a waiver needs an end", where="--until", remedy=FORMS)
    return request.until


def _sheet_warnings(context: SiteContext, request: DecisionRequest) -> tuple[str, ...]:
    """Return a warning where the sheet names another serial than a merge."""
    if request.decision is not Decision.MERGE:
        return ()
    return tuple(
        f"the sheet has serial {node.serial} for {node.name}: correct it to {request.serial}"
        for node in context.site.nodes
        if node.name in request.nodes and node.serial and node.serial != request.serial
    )
