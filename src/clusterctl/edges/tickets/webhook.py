"""A service of the site's own, by the requests of docs/how-to/tickets.md."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from clusterctl.edges.tickets.http import TicketApi, key_of, text_of
from clusterctl.fleet.errors import EdgeError
from clusterctl.fleet.incidents.ticket_text import Attachment, TicketText
from clusterctl.ports.deadline import Deadline
from clusterctl.ports.tickets import Ticket

_PATH = "/tickets"


@dataclass(frozen=True, slots=True)
class WebhookTickets:
    """Meets `ports.Tickets`. A POST that adds something has an `Idempotency-Key`: the service carries it out once."""

    api: TicketApi

    def find(self, incident: str, since: datetime, deadline: Deadline) -> Ticket | None:
        del since
        found = self.api.get(_PATH, deadline, {"incident": incident})
        return None if found is None else self._ticket(found)

    def create(self, text: TicketText, deadline: Deadline) -> Ticket:
        content = {"incident": text.incident, "title": text.title, "body": text.body}
        return self._ticket(self._post(_PATH, content, text.incident, deadline))

    def attach(self, key: str, attachment: Attachment, deadline: Deadline) -> None:
        content = {"name": attachment.name, "text": attachment.text}
        self._post(f"{_PATH}/{key}/attachments", content, f"{key}/{attachment.name}", deadline)

    def note(self, key: str, text: str, deadline: Deadline) -> None:
        self._post(f"{_PATH}/{key}/notes", {"text": text}, f"{key}/{text}", deadline)

    def has_note(self, key: str, marker: str, deadline: Deadline) -> bool:
        """Return False: a note that is sent again has the same key."""
        del key, marker, deadline
        return False

    def resolve(self, key: str, deadline: Deadline) -> None:
        """Close the ticket. The service may be asked again: closing a closed ticket changes nothing."""
        self.api.post(f"{_PATH}/{key}/close", deadline, json={})

    def read(self, key: str, deadline: Deadline) -> Ticket:
        found = self.api.get(f"{_PATH}/{key}", deadline)
        if found is None:
            raise EdgeError("there is no such ticket", where=key, remedy="look whether it was deleted")
        return self._ticket(found)

    def _post(self, path: str, content: Any, identity: str, deadline: Deadline) -> Any:
        digest = hashlib.sha256(identity.encode()).hexdigest()
        return self.api.post(path, deadline, json=content, headers={"Idempotency-Key": digest})

    def _ticket(self, found: Any) -> Ticket:
        key = key_of(found, "key", _PATH)
        return Ticket(key=key, url=text_of(found, "url", _PATH), closed=found.get("closed") is True)
