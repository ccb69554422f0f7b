"""A ticket system."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from clusterctl.fleet.incidents.ticket_text import Attachment, TicketText
from clusterctl.ports.deadline import Deadline


@dataclass(frozen=True, slots=True, kw_only=True)
class Ticket:
    """`key` names it in its system; `url` shows it to people."""

    key: str
    url: str
    closed: bool = False


class Tickets(Protocol):
    """Creates and reads tickets. Nothing is tried twice: after an error without an answer, look before acting again."""

    def find(self, incident: str, since: datetime, deadline: Deadline) -> Ticket | None:
        """Return the ticket with the marker of this incident, created after `since`; None where there is none."""
        ...

    def create(self, text: TicketText, deadline: Deadline) -> Ticket: ...
    def attach(self, key: str, attachment: Attachment, deadline: Deadline) -> None: ...
    def note(self, key: str, text: str, deadline: Deadline) -> None: ...
    def has_note(self, key: str, marker: str, deadline: Deadline) -> bool:
        """Return whether the ticket has a note with this marker."""
        ...

    def resolve(self, key: str, deadline: Deadline) -> None:
        """Close an open ticket as done. Raise `EdgeError` where its system does not allow that."""
        ...

    def read(self, key: str, deadline: Deadline) -> Ticket:
        """Return the ticket as it is now. Raise `EdgeError` where it is gone."""
        ...
