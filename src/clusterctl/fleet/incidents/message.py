"""The text of a message about an incident, for people: bounded, and without what a chat would act on."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from clusterctl.fleet.durations import utc_text
from clusterctl.fleet.incidents.incident import IncidentFacts, IncidentState, Member, Phase, Severity
from clusterctl.fleet.peer_text import visible_line

MAX_TITLE = 160
MAX_BODY = 3500
_MEMBERS = 20
_CAUSE = 300
_INERT = str.maketrans({"<": "(", ">": ")", "[": "(", "]": ")", "{": "(", "}": ")", "@": "(at)", "`": "'"})
"""Characters of links, mentions, macros and code in chats, Markdown and Jira → what they are replaced by."""
_OPENS = re.compile(
    r"(?<![\w./-])\*(?=\S)|\*(?=[^\s'\"])"  # bold text; 'burnin-*' is none
    r"|~(?=[^\s/])|[!^](?=\S)"  # struck and raised text, images
    r"|#(?=\d)|(?<!\w)#(?=\w)"  # references and channels; monitoring.md#down is none
    r"|(?<![A-Za-z0-9])_(?=\S)"  # italic text; mlx5_0 has none
    r"|&(?=[#\w])"  # entities: &#64; is a mention on GitHub
    r"|(?i:\bgh-)(?=\d)"  # GitHub's other form of a reference
    r"|/(?=/)|(?i:\bwww\.)(?=\S)"  # addresses, with and without a scheme
)
"""What has a meaning where no blank follows: it gets one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class IncidentMessage:
    """`incident`: its id, which every repeat of the message carries; `urgent`: the incident is critical."""

    incident: str
    title: str
    body: str
    phase: Phase
    urgent: bool = False


def inert(text: str, limit: int = _CAUSE) -> str:
    """Return text of a peer as one bounded line in which a chat finds no link, mention or markup."""
    return literal(visible_line(text, limit))


def literal(text: str) -> str:
    """Return text with the same lines, of which no chat and no ticket system makes anything but text."""
    return _OPENS.sub(r"\g<0> ", text.translate(_INERT))


def message(state: IncidentState, facts: IncidentFacts, site: str) -> IncidentMessage:
    """Return the message about an incident as it is now, with the facts of its state."""
    title = visible_line(f"[{site}] {_heading(state)}: {inert(facts.cause)}", MAX_TITLE)
    body = "\n".join(_lines(state, facts))
    return IncidentMessage(
        incident=state.id,
        title=title,
        body=body if len(body) <= MAX_BODY else body[: MAX_BODY - 1] + "…",
        phase=state.phase,
        urgent=facts.severity is Severity.CRITICAL,
    )


def _heading(state: IncidentState) -> str:
    if state.phase is Phase.RESOLVED:
        return "resolved"
    return "incident" if state.phase is Phase.OPENED else "update"


def _lines(state: IncidentState, facts: IncidentFacts) -> Iterator[str]:
    yield f"{facts.severity.value}: {facts.what.value}, {inert(facts.code)}, at {inert(facts.place)}"
    yield f"cause: {inert(facts.cause)}"
    if state.change:
        yield f"{'resolved' if state.phase is Phase.RESOLVED else 'changed'}: {inert(state.change)}"
    if facts.remedy and state.phase is not Phase.RESOLVED:
        yield f"what to do: {inert(facts.remedy)}"
    members = facts.active or facts.members
    for member in members[:_MEMBERS]:
        yield f"- {_member(member)}"
    if len(members) > _MEMBERS:
        yield f"- and {len(members) - _MEMBERS} more"
    if state.opened_at is not None:
        yield f"since {utc_text(state.opened_at)}"
    yield f"incident {state.id}, message {state.revision}: clusterctl incident show {state.id}"


def _member(member: Member) -> str:
    known = [member.place, f"serial {member.serial}" if member.serial else ""]
    where = ", ".join(inert(part, 80) for part in known if part)
    cause = f": {inert(member.cause)}" if member.cause else ""
    return f"{inert(member.name, 80)}{f' ({where})' if where else ''}{cause}"
