"""Incidents and messages about them as text and as JSON."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import Any

from clusterctl.fleet.durations import utc_text
from clusterctl.operations.incidents import IncidentUpdate, ListedIncident, by_channel
from clusterctl.operations.notify import SendResult, SentMessage
from clusterctl.operations.serial import to_data
from clusterctl.operations.tickets import TicketResult
from clusterctl_cli.text import ago, columns, terminal_width

HEAD = ("INCIDENT", "SEVERITY", "ABOUT", "CHANGED", "CAUSE")


def row(one: ListedIncident, now: datetime) -> tuple[str, ...]:
    """Return an incident as a row below `HEAD`."""
    state = "resolved" if one.state.resolved_at is not None else one.facts.severity.value
    return one.state.id, state, one.facts.what.value, ago(one.state.updated_at, now), one.facts.cause


def incident_text(one: ListedIncident) -> str:
    """Return all that is known of an incident but its history."""
    return "\n".join(_lines(one))


def _lines(one: ListedIncident) -> Iterator[str]:
    state, facts = one.state, one.facts
    yield f"{state.id}  {'open' if state.open else 'resolved'}, {facts.severity.value}"
    yield facts.cause
    if facts.remedy and state.open:
        yield f"  → {facts.remedy}"
    yield f"about {facts.what.value}, {facts.code}, at {facts.place}"
    if state.opened_at is not None:
        yield f"opened {utc_text(state.opened_at)}"
    if state.resolved_at is not None:
        yield f"resolved {utc_text(state.resolved_at)}: {state.change}"
    if state.still_seen:
        yield "its end was not seen yet: no new incident is opened until then"
    if facts.members:
        rows = [
            (member.name, member.place, member.serial, "" if member.active else "healthy again", member.cause)
            for member in facts.members
        ]
        yield ""
        yield columns(("MEMBER", "PLACE", "SERIAL", "STATE", "CAUSE"), rows, width=terminal_width())
    for channel, text in by_channel(state).items():
        yield f"{channel}: {text}"
    yield ""


def ticket_lines(one: ListedIncident, release: str) -> Iterator[str]:
    """Yield what is known of the ticket of an incident; `release`: the command that a closed one offers."""
    ticket = one.state.ticket
    if ticket.key:
        yield f"ticket {ticket.key} ({'closed' if ticket.closed else 'open'}): {ticket.url}"
    if ticket.attach_failure:
        yield f"ticket: {ticket.attach_failure}"
    if ticket.failure:
        yield f"ticket: the last of {ticket.attempts} attempts failed: {ticket.failure}"
    if release:
        yield f"its ticket is closed; after the repair: {release}"


def tickets_json(result: TicketResult) -> dict[str, Any]:
    """Return what became of the tickets as data."""
    return {"incidents": to_data(result.incidents), "tickets": [to_data(one) for one in result.tickets]}


def tickets_text(result: TicketResult) -> str:
    """Return what became of the tickets, a line for each; a closed one with the command that it offers."""
    lines = [update_text(result.incidents)]
    for one in result.tickets:
        state = "closed" if one.closed else "open"
        name = f"ticket {one.key} ({state}) {one.url}" if one.key else "no ticket yet"
        parts = (name, ", ".join(one.did), f"failed: {one.failure}" if one.failure else "")
        lines.append(f"{one.incident}: {'; '.join(part for part in parts if part)}")
        if one.release:
            lines.append(f"  after the repair: {one.release}")
    return "\n".join(lines)


def send_json(result: SendResult) -> dict[str, Any]:
    """Return what was sent as data."""
    return {
        "incidents": to_data(result.incidents),
        "messages": [to_data(one) for one in result.messages],
        "pending": result.pending,
        "given_up": result.given_up,
    }


def send_text(result: SendResult) -> str:
    """Return what was sent, a line for each message."""
    lines = [update_text(result.incidents), *map(sent_text, result.messages)]
    if result.pending:
        lines.append(f"{result.pending} messages wait for an attempt")
    if result.given_up:
        lines.append(f"{result.given_up} messages are given up: clusterctl incident list")
    return "\n".join(lines)


def update_text(found: IncidentUpdate) -> str:
    """Return what became of the incidents as one line."""
    counts = {"opened": found.opened, "updated": found.updated, "resolved": found.resolved}
    parts = [f"{len(names)} {what}" for what, names in counts.items() if names]
    return f"incidents: {found.open} open" + (f" ({', '.join(parts)})" if parts else "")


def sent_text(one: SentMessage) -> str:
    """Return what became of one message as one line."""
    return f"{one.incident} to {one.channel}: {f'failed: {one.failure}' if one.failure else 'sent'}"
