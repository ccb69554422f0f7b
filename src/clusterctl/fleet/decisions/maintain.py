"""A node's part in a rolling change: when it may be changed, and the order that has it proven again. Pure."""

from __future__ import annotations

from datetime import datetime

from clusterctl.fleet.decisions.permissions import require_living, require_no_hold, require_no_open_act
from clusterctl.fleet.decisions.revalidate import order_event
from clusterctl.fleet.errors import UsageError
from clusterctl.fleet.event import NewEvent, node_event
from clusterctl.fleet.node import RevalidationOrigin, Stage, Step
from clusterctl.fleet.payloads.decisions import HoldLifted, HoldSet
from clusterctl.fleet.state import NodeState, Revalidation

SINCE = Step.CONFIGURE
"""The first step that proves a change: roles, then cables, burn-in and admission."""


def hold_reason(plan: str) -> str:
    """Return the text of the hold that keeps other runs off a machine while its settings are changed."""
    return f"maintain {plan}"


def is_held_by(node: NodeState, plan: str) -> bool:
    """Return whether the plan itself holds the node."""
    return node.hold is not None and node.hold.plan == plan


def is_begun(node: NodeState) -> bool:
    """Return whether a rolling change put the node back before its steps, and it is not gold again."""
    return node.revalidation is not None and node.revalidation.origin is RevalidationOrigin.MAINTENANCE


def require_fit(node: NodeState, plan: str, now: datetime) -> None:
    """Raise `UsageError` where the node may not be changed: it is held, quarantined, or on its way to gold."""
    require_living(node)
    if is_held_by(node, plan):
        return
    require_no_hold(node, now)
    if node.stage is Stage.QUARANTINED:
        remedy = f"repair it, clusterctl release {node.name} --reason '…', then go on with the plan"
        raise UsageError(f"it is quarantined: {node.cause}", where=node.name, remedy=remedy)
    if not node.in_pool(now) and not is_begun(node):
        remedy = f"bring it to gold first: clusterctl why {node.name}"
        raise UsageError(f"it is {node.stage.value}, not gold", where=node.name, remedy=remedy)


def held(node: NodeState, plan: str, now: datetime) -> tuple[NewEvent, ...]:
    """Return the hold of a node while its settings are changed; nothing where the plan holds it already."""
    require_fit(node, plan, now)
    if is_held_by(node, plan):
        return ()
    return (node_event(node.id, HoldSet(reason=hold_reason(plan), until=None, plan=plan)),)


def ordered(node: NodeState, plan: str, reason: str, now: datetime) -> tuple[NewEvent, ...]:
    """Return the events that put the node before `SINCE`, and lift the plan's own hold with them.

    Raises `UsageError` where the node may not be changed, or an act on it is open.
    """
    require_fit(node, plan, now)
    require_no_open_act(node)
    why = Revalidation(RevalidationOrigin.MAINTENANCE, f"{hold_reason(plan)}: {reason}")
    lifted = (node_event(node.id, HoldLifted(reason=why.reason)),) if is_held_by(node, plan) else ()
    return (order_event(node, SINCE, why), *lifted)
