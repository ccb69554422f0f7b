"""What people may decide about a node: from its state and their words to the events that say so, or a `UsageError`.

The actor is not among the words: the journal writes whose event it is.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from clusterctl.fleet.decisions.waiver import NEVER, same_part
from clusterctl.fleet.durations import in_words
from clusterctl.fleet.errors import UsageError
from clusterctl.fleet.event import Kind, NewEvent
from clusterctl.fleet.finding import Finding
from clusterctl.fleet.hardware.parts import Part, part_named
from clusterctl.fleet.node import Stage, Step
from clusterctl.fleet.state import NodeState

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


def waive(node: NodeState, check: str, subject: str, reason: str, until: datetime) -> Order:
    """Only what a report has found can be answered for: no blank cheques, and no typing errors."""
    living(node)
    if check in NEVER:
        raise UsageError(f"{check} is never waived: {NEVER[check]}", where="--check", remedy="mend what it found")
    meant = _found(node, check, subject)
    data = {"check": check, "subject": meant[0].subject if subject else "", "until": until.isoformat()}
    what = f"{check} of {data['subject']}" if subject else check
    words = f"{what} counts as a warning until {in_words(until)} (it is {meant[0].verdict.value}: {meant[0].cause})"
    if node.stopped_at is not None:
        words += f"; clusterctl release {node.name}, and {node.stopped_at.value} is run and judged again"
    return Order(node, (NewEvent("node", node.id, Kind.WAIVER_GRANTED, {**data, "reason": said(reason)}),), words)


def revoke(node: NodeState, check: str, subject: str, reason: str) -> Order:
    """All waivers of the check, or that of the subject; they stop counting at the next decision."""
    living(node)
    meant = [w for w in node.waivers if w.check == check and (not subject or same_part(w.subject, subject))]
    if not meant:
        there = "; ".join(f"{waiver.what} {waiver}" for waiver in node.waivers) or "there are none"
        what = f"{check} of {subject}" if subject else check
        raise UsageError(f"no waiver of {what}: {there}", where=node.name, remedy="name one that is there")
    data = {"check": check, "reason": said(reason)}
    kind = Kind.WAIVER_REVOKED
    events = tuple(NewEvent("node", node.id, kind, {**data, "subject": waiver.subject}) for waiver in meant)
    what = ", ".join(waiver.what for waiver in meant)
    return Order(node, events, f"{what} is no longer waived; that counts at the next decision about the node")


def _found(node: NodeState, check: str, subject: str) -> list[Finding]:
    """The findings that keep the node back and are meant, the worst first."""
    against = [f for report in node.reports.values() for f in report.findings if not f.verdict.admits]
    meant = [f for f in against if f.check == check and (not subject or same_part(f.subject, subject))]
    if not meant:
        there = ", ".join(sorted({f"{f.check} ({f.subject})" for f in against})) or "none at all"
        what = f"{check} on {subject}" if subject else check
        raise UsageError(
            f"no report of {node.name} has a bad finding {what}; bad ones: {there}",
            where="--subject" if subject else "--check",
            remedy="waive one that was found, by its check and subject",
        )
    return sorted(meant, key=lambda finding: -finding.verdict.rank)
