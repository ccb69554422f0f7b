"""Answering for a finding until a date, and taking that back."""

from __future__ import annotations

from datetime import datetime

from clusterctl.fleet.errors import UsageError
from clusterctl.fleet.event import Kind, NewEvent
from clusterctl.fleet.finding import Finding
from clusterctl.fleet.orders import Order, living, said
from clusterctl.fleet.state import NodeState
from clusterctl.fleet.until import in_words
from clusterctl.fleet.waiver import NEVER, same_part


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
