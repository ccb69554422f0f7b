"""Hold, release, quarantine, waive, revoke: from a node's state and an operator's reason to the events to record.

Each function raises `UsageError` where the decision is not permitted. The journal adds the actor.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from clusterctl.fleet.decisions.permissions import require_living
from clusterctl.fleet.decisions.waiver import NEVER, same_part
from clusterctl.fleet.durations import utc_text
from clusterctl.fleet.errors import UsageError
from clusterctl.fleet.event import NewEvent, Stream, node_event
from clusterctl.fleet.finding import MAX_CAUSE, Finding
from clusterctl.fleet.hardware.parts import MACHINE, Part, part_named, part_of
from clusterctl.fleet.node import Stage, Step
from clusterctl.fleet.payloads.decisions import (
    HoldLifted,
    HoldSet,
    NodeReleased,
    RepairReported,
    WaiverGranted,
    WaiverRevoked,
)
from clusterctl.fleet.payloads.node import NodeQuarantined
from clusterctl.fleet.peer_text import visible_line
from clusterctl.fleet.stages import BEFORE, Move, possible
from clusterctl.fleet.state import NodeState

MAX_SERIAL = 120


@dataclass(frozen=True, slots=True)
class Order:
    """A decision about one node, and what it does in plain words. No events: nothing is left to do."""

    node: NodeState
    events: tuple[NewEvent, ...]
    effect: str


def hold(node: NodeState, reason: str, until: datetime | None) -> Order:
    """Return the hold of a node. It replaces an earlier one."""
    require_living(node)
    ends = f"until {utc_text(until)}" if until else "until it is released"
    before = f" (it is {node.hold})" if node.hold is not None else ""
    event = node_event(node.id, HoldSet(reason=checked_reason(reason), until=until))
    return Order(node, (event,), f"no step touches it {ends}{_leaves_pool(node)}{before}")


def release(node: NodeState, reason: str) -> Order:
    """Return the end of an operator's hold, and the way back of a stopped node to the step that stopped it."""
    require_living(node)
    events, words = _way_back(node, reason)
    if not events:
        raise UsageError(
            f"nothing holds {node.name}: it is {node.stage.value}", where=node.name, remedy="nothing to release"
        )
    return Order(node, tuple(events), "; ".join(words))


def repaired(node: NodeState, done: str, part: str, serial: str) -> Order:
    """Return the report of a repair, and the way back of a stopped node to the step that stopped it.

    The serial of a new part joins the history of the node, of the new part and of the one that was there.
    """
    require_living(node)
    new = visible_line(serial, MAX_SERIAL)
    replaced = part_named(node, part) if part else _blamed(node)
    if new and (len(serial) > MAX_SERIAL or new == replaced.serial):
        message = "is the serial of the part that was there" if new == replaced.serial else "is too long"
        raise UsageError(message, where="--serial", remedy="copy it from the label of the new part")
    events, words = _way_back(node, done)
    if not events:
        remedy = "nothing to report"
        raise UsageError(f"nothing waits for a repair: it is {node.stage.value}", where=node.name, remedy=remedy)
    report = RepairReported(
        node=node.name, done=checked_reason(done), part=replaced.subject, old=replaced.serial, new=new
    )
    events.append(node_event(node.id, report))
    events += [NewEvent(Stream.PART, name, report) for name in (replaced.serial, new) if new and name]
    return Order(node, tuple(events), f"{report}; {'; '.join(words)}")


def _blamed(node: NodeState) -> Part:
    """Return the one part that keeps a node back; where there is none, or several, a part without name and serial."""
    parts = {part_of(node, finding) for finding in node.findings}
    only = next(iter(parts)) if len(parts) == 1 else Part(MACHINE, "")
    return Part("", "") if only.subject == MACHINE else only


def _way_back(node: NodeState, reason: str) -> tuple[list[NewEvent], list[str]]:
    """Return the events that end a hold and a quarantine, and what they do in plain words."""
    events, words = [], []
    if node.hold is not None:
        events.append(node_event(node.id, HoldLifted(reason=checked_reason(reason))))
        words.append(f"no longer {node.hold}")
    if node.stopped_at is not None and possible(node.stage, Move.RELEASE):
        back = BEFORE[node.stopped_at]
        events.append(node_event(node.id, NodeReleased(to=back, reason=checked_reason(reason), was=node.stage)))
        words.append(f"back at {back.value}, before {node.stopped_at.value} (it was stopped: {node.cause})")
    return events, words


def quarantine(node: NodeState, reason: str, part: str, step: Step | None) -> Order:
    """Return the quarantine of a node, independent of the gate.

    A release leads back to `step`: by default the one that the node would take next, burn-in for a gold node.
    """
    require_living(node)
    if node.stage is Stage.QUARANTINED:
        remedy = f"clusterctl why {node.name}; release it first if this is something else"
        raise UsageError(f"it is quarantined already: {node.cause}", where=node.name, remedy=remedy)
    back = _not_beyond(node, step)
    named = part_named(node, part) if part else Part("node", "")
    on = f" ({named})" if part else ""
    cause = f"{checked_reason(reason)}{on}"
    remedy = f"repair it, then clusterctl release {node.name} --reason '…'"
    events = [node_event(node.id, by_operator(back, cause, remedy, named))]
    if named.serial:
        copy = by_operator(back, cause, remedy, named, node.name)
        events.append(NewEvent(Stream.PART, named.serial, copy))
    return Order(node, tuple(events), f"quarantined{on}; a release leads back to {back.value}{_leaves_pool(node)}")


def by_operator(step: Step, cause: str, remedy: str, part: Part, node: str = "") -> NodeQuarantined:
    """Return the payload of an operator's quarantine. `node`: its name, for the copy in the part's stream."""
    return NodeQuarantined(
        step=step,
        cause=cause,
        remedy=remedy,
        check="operator",
        subject=part.subject,
        serial=part.serial,
        by_operator=True,
        node=node,
    )


def waive(node: NodeState, check: str, subject: str, reason: str, until: datetime) -> Order:
    """Return a waiver of what a report has found: nothing is waived in advance."""
    require_living(node)
    if check in NEVER:
        raise UsageError(f"{check} is never waived: {NEVER[check]}", where="--check", remedy="repair what it found")
    meant = _found(node, check, subject)
    subject = meant[0].subject if subject else ""
    what = f"{check} of {subject}" if subject else check
    words = f"{what} counts as a warning until {utc_text(until)} (it is {meant[0].verdict.value}: {meant[0].cause})"
    if node.stopped_at is not None:
        words += f"; clusterctl release {node.name}, and {node.stopped_at.value} is run and judged again"
    payload = WaiverGranted(check=check, subject=subject, until=until, reason=checked_reason(reason))
    return Order(node, (node_event(node.id, payload),), words)


def revoke(node: NodeState, check: str, subject: str, reason: str) -> Order:
    """Return the end of all waivers of the check, or of that of the subject. It counts at the next decision."""
    require_living(node)
    meant = [waiver for waiver in node.waivers if waiver.check == check and _is_of(waiver.subject, subject)]
    if not meant:
        there = "; ".join(f"{waiver.what} {waiver}" for waiver in node.waivers) or "there are none"
        what = f"{check} of {subject}" if subject else check
        raise UsageError(f"no waiver of {what}: {there}", where=node.name, remedy="name one that is there")
    reason = checked_reason(reason)
    revoked = [WaiverRevoked(check=check, subject=waiver.subject, reason=reason) for waiver in meant]
    what = ", ".join(waiver.what for waiver in meant)
    words = f"{what} is no longer waived; that counts at the next decision about the node"
    return Order(node, _events(node, revoked), words)


def checked_reason(reason: str) -> str:
    """Return the reason in one line. Raise `UsageError` where it is empty, or holds the `…` of our own messages."""
    words = visible_line(reason, MAX_CAUSE)
    if not words:
        raise UsageError("the reason is empty", where="--reason", remedy="give a reason: others will read it")
    if words.endswith("…") or "…;" in words:
        raise UsageError(
            "the “…” stands for your own words", where="--reason", remedy="write what was done in its place"
        )
    return words


def _events(node: NodeState, payloads: Iterable[WaiverRevoked]) -> tuple[NewEvent, ...]:
    return tuple(node_event(node.id, payload) for payload in payloads)


def _leaves_pool(node: NodeState) -> str:
    return "; it leaves the gold pool" if node.stage is Stage.GOLD else ""


def _not_beyond(node: NodeState, step: Step | None) -> Step:
    """Return the step to go back to: never one that the node has not come to yet."""
    farthest = node.next_step or Step.ADMIT
    order = list(Step)
    if step is not None and order.index(step) > order.index(farthest):
        raise UsageError(
            f"{node.name} is {node.stage.value} and has not come to {step.value} yet",
            where="--step",
            remedy=f"name {farthest.value} or a step before it",
        )
    return step or node.next_step or Step.BURNIN


def _is_of(part: str, subject: str) -> bool:
    """Return whether the part is the subject that a command names; an empty one means all."""
    return not subject or same_part(part, subject)


def _against(node: NodeState) -> list[Finding]:
    return [finding for report in node.reports.values() for finding in report.findings if not finding.verdict.admits]


def _found(node: NodeState, check: str, subject: str) -> list[Finding]:
    """Return the findings that keep the node back and are meant, the worst first."""
    against = _against(node)
    meant = [finding for finding in against if finding.check == check and _is_of(finding.subject, subject)]
    if not meant:
        there = ", ".join(sorted({f"{f.check} ({f.subject})" for f in against})) or "none at all"
        what = f"{check} on {subject}" if subject else check
        raise UsageError(
            f"no report of {node.name} has a bad finding {what}; bad ones: {there}",
            where="--subject" if subject else "--check",
            remedy="waive one that was found, by its check and subject",
        )
    return sorted(meant, key=lambda finding: -finding.verdict.rank)
