"""The texts of an incident's ticket: what is wrong where, with serials, what to do, and an excerpt of the evidence."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from clusterctl.fleet.incidents.incident import IncidentFacts, IncidentState, Phase
from clusterctl.fleet.incidents.message import inert, literal
from clusterctl.fleet.peer_text import visible
from clusterctl.fleet.reporting.work_orders import WorkOrder

MAX_TITLE = 200
MAX_BODY = 30_000
"""Jira takes 32,767 characters, GitHub 65,536."""
MAX_SHEET = 60_000
_MEMBERS = 100
_EXCERPT = 2_000
_FINDINGS = 6


@dataclass(frozen=True, slots=True, kw_only=True)
class Attachment:
    """A file of a ticket: Markdown."""

    name: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Exhibit:
    """A piece of evidence: the command, where it ran, and an excerpt of its output."""

    command: str
    where: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TicketText:
    """What a ticket is created with. `body` begins with the marker of its incident."""

    incident: str
    title: str
    body: str
    attachments: tuple[Attachment, ...] = ()


def marker(incident: str) -> str:
    """Return the line by which a ticket of an earlier attempt is found."""
    return f"clusterctl-incident: {incident}"


def note_marker(state: IncidentState) -> str:
    """Return the line by which a note of an earlier attempt is found."""
    return f"clusterctl-note: {state.id}/{state.revision}"


def ticket_text(
    state: IncidentState, facts: IncidentFacts, site: str, orders: Sequence[WorkOrder], exhibits: Sequence[Exhibit]
) -> TicketText:
    """Return the ticket of an incident."""
    lines = [*_head(state, facts), *_members(facts), *_orders(orders), *_exhibits(exhibits)]
    return TicketText(
        incident=state.id,
        title=f"[{site}] {inert(facts.cause, MAX_TITLE - len(site) - 3)}",
        body=_bounded("\n".join(lines), MAX_BODY),
    )


def note_text(state: IncidentState, facts: IncidentFacts) -> str:
    """Return the note about the newest change of an incident."""
    what = "Resolved" if state.phase is Phase.RESOLVED else "Changed"
    lines = [
        note_marker(state),
        "",
        f"{what}: {inert(state.change)}",
        "",
        f"Cause: {inert(facts.cause)}",
        "",
        *_members(facts),
    ]
    return _bounded("\n".join(lines), MAX_BODY)


def bounded_sheet(name: str, text: str) -> Attachment:
    """Return a sheet as an attachment of bounded length."""
    return Attachment(name=f"{name}.md", text=_bounded(visible(text), MAX_SHEET))


def _bounded(text: str, limit: int) -> str:
    return text if len(text) <= limit else f"{text[: limit - 2]}\n…"


def _head(state: IncidentState, facts: IncidentFacts) -> Iterator[str]:
    yield marker(state.id)
    yield ""
    yield f"Cause: {inert(facts.cause)}"
    yield f"{facts.severity.value}; {facts.what.value}, {inert(facts.code)}, at {inert(facts.place)}"
    if facts.remedy:
        yield f"What to do: {inert(facts.remedy)}"
    yield ""


def _members(facts: IncidentFacts) -> Iterator[str]:
    for member in facts.members[:_MEMBERS]:
        known = (member.place, f"serial {member.serial}" if member.serial else "")
        where = ", ".join(inert(part, 80) for part in known if part)
        state = "" if member.active else " [healthy again]"
        yield f"- {inert(member.name, 80)}{f' ({where})' if where else ''}{state}: {inert(member.cause)}"
    if len(facts.members) > _MEMBERS:
        yield f"- and {len(facts.members) - _MEMBERS} more"
    yield ""


def _orders(orders: Sequence[WorkOrder]) -> Iterator[str]:
    for order in orders:
        serial = f", serial {inert(order.serial, 80)}" if order.serial else ""
        slot = f", slot {inert(order.slot, 80)}" if order.slot else ""
        nodes = ", ".join(node.name for node in order.nodes)
        yield f"Work order: {inert(order.part, 120)}{slot}{serial}; {order.location}; {nodes}"
        yield from (f"  - found: {inert(finding.cause)}" for finding in order.findings[:_FINDINGS])
        yield from (f"  - do: {inert(remedy)}" for remedy in order.remedies)
        yield from (f"  - cable: {inert(cable)}" for cable in order.cables)
        yield from (f"  - first know: {inert(note)}" for note in order.notes)
        if order.write_back:
            yield f"  - write back: `{literal(visible(order.write_back))}`"
        yield ""


def _exhibits(exhibits: Sequence[Exhibit]) -> Iterator[str]:
    for exhibit in exhibits:
        yield f"Evidence: {inert(exhibit.command)} at {inert(exhibit.where)}"
        text = literal(_bounded(visible(exhibit.text), _EXCERPT))
        yield from (f"  │ {line}" for line in text.splitlines())  # no line begins as a list, a heading or a table does
        yield ""
