"""What people may decide about a node: from its state and their words to the events that say so, or a `UsageError`.

The actor is not among the words: the journal writes whose event it is.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from clusterctl.fleet.errors import UsageError
from clusterctl.fleet.event import Kind, NewEvent
from clusterctl.fleet.node import Stage, Step
from clusterctl.fleet.parts import Part, part_named
from clusterctl.fleet.state import NodeState
from clusterctl.fleet.until import in_words

LEADS_BACK = {step: next(stage for stage in Stage if stage.next_step is step) for step in Step}
"""Where a node stands before each step."""


@dataclass(frozen=True, slots=True)
class Order:
    """A decision about one node, and in words what it does. No events: nothing is left to do."""

    node: NodeState
    events: tuple[NewEvent, ...]
    words: str


def hold(node: NodeState, reason: str, until: datetime | None) -> Order:
    """At any stage but retired; a later hold replaces the one before."""
    living(node)
    data = {"reason": said(reason), "until": until.isoformat() if until else None}
    ends = f"until {in_words(until)}" if until else "until it is released"
    pool = "; it leaves the gold pool" if node.stage is Stage.GOLD else ""
    before = f" (it is {node.hold})" if node.hold is not None else ""
    return Order(node, (_event(node, Kind.HOLD_SET, **data),), f"no step touches it {ends}{pool}{before}")


def release(node: NodeState, reason: str) -> Order:
    """Lifts a person's hold, and sends a stopped node back to the step that stopped it."""
    living(node)
    events, words = [], []
    if node.hold is not None:
        events.append(_event(node, Kind.HOLD_LIFTED, reason=said(reason)))
        words.append(f"no longer {node.hold}")
    if node.stopped_at is not None:
        back = LEADS_BACK[node.stopped_at]
        events.append(_event(node, Kind.NODE_RELEASED, to=back.value, reason=said(reason)))
        words.append(f"back at {back.value}, before {node.stopped_at.value} (it was stopped: {node.cause})")
    if not events:
        raise UsageError(
            f"nothing holds {node.name}: it is {node.stage.value}", where=node.name, remedy="nothing to release"
        )
    return Order(node, tuple(events), "; ".join(words))


def quarantine(node: NodeState, reason: str, part: str, step: Step | None) -> Order:
    """A person's word beats the gate. A release leads back to `step`: by default the one that the node would take next,
    burn-in for a gold one.
    """
    living(node)
    if node.stage is Stage.QUARANTINED:
        remedy = f"clusterctl why {node.name}; release it first if this is something else"
        raise UsageError(f"it is quarantined already: {node.cause}", where=node.name, remedy=remedy)
    back = _not_beyond(node, step)
    named = part_named(node, part) if part else Part("node", "")
    on = f" ({named})" if part else ""
    data = {
        "step": back.value,
        "cause": f"{said(reason)}{on}",
        "remedy": f"mend it, then clusterctl release {node.name} --reason '…'",
        "verdict": "fail",
        "check": "person",
        "subject": named.subject,
        "serial": named.serial,
        "by_person": True,
    }
    events = [_event(node, Kind.NODE_QUARANTINED, **data)]
    if named.serial:
        events.append(NewEvent("part", named.serial, Kind.NODE_QUARANTINED, {**data, "node": node.name}))
    pool = "; it leaves the gold pool" if node.stage is Stage.GOLD else ""
    return Order(node, tuple(events), f"quarantined{on}; a release leads back to {back.value}{pool}")


def _not_beyond(node: NodeState, step: Step | None) -> Step:
    """The step to go back to: never one that the node has not earned yet."""
    farthest = node.next_step or Step.ADMIT
    usual = node.next_step or Step.BURNIN
    order = list(Step)
    if step is not None and order.index(step) > order.index(farthest):
        raise UsageError(
            f"{node.name} is {node.stage.value} and has not come to {step.value} yet",
            where="--step",
            remedy=f"name {farthest.value} or a step before it",
        )
    return step or usual


def said(reason: str) -> str:
    """The reason, if it is one: what our own lines leave open with `…` is still to be said."""
    words = " ".join("".join(letter if letter.isprintable() else " " for letter in reason).split())
    if not words:
        raise UsageError("a reason without words", where="--reason", remedy="say why; others will read it")
    if words.endswith("…") or "…;" in words:
        raise UsageError("the “…” stands for your own words", where="--reason", remedy="say in its place what was done")
    return words


def living(node: NodeState) -> None:
    """Raise `UsageError` for a retired node: that is final."""
    if node.stage is Stage.RETIRED:
        remedy = "if its machine is back under another name: clusterctl merge NAME --serial SERIAL --from " + node.name
        raise UsageError(f"{node.name} is out of the site's life: {node.cause}", where=node.name, remedy=remedy)


def _event(node: NodeState, kind: Kind, **data: object) -> NewEvent:
    return NewEvent("node", node.id, kind, data)
