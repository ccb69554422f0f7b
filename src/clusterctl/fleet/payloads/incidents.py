"""Incidents, messages about them and alerts: payloads of the streams `incident` and `alert`."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import ClassVar

from clusterctl.fleet.event import Kind, Payload
from clusterctl.fleet.incidents.incident import IncidentFacts, Severity


@dataclass(frozen=True, slots=True, kw_only=True)
class IncidentOpened(Payload):
    kind: ClassVar = Kind.INCIDENT_OPENED
    facts: IncidentFacts

    def __str__(self) -> str:
        return f"opened: {self.facts.cause}"


@dataclass(frozen=True, slots=True, kw_only=True)
class IncidentUpdated(Payload):
    """`facts`: all that is known now; `change`: what is new in them, as text."""

    kind: ClassVar = Kind.INCIDENT_UPDATED
    facts: IncidentFacts
    change: str

    def __str__(self) -> str:
        return f"updated: {self.change}"


@dataclass(frozen=True, slots=True, kw_only=True)
class IncidentResolved(Payload):
    """`by_hand`: an operator ends it. Else clusterctl does not see it any more, which is also written once about an
    incident that an operator has resolved before.
    """

    kind: ClassVar = Kind.INCIDENT_RESOLVED
    reason: str
    by_hand: bool = False

    def __str__(self) -> str:
        return f"resolved by hand: {self.reason}" if self.by_hand else f"resolved: {self.reason}"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Message(Payload):
    """A message about one revision of the incident to one channel of the site."""

    channel: str
    revision: int


@dataclass(frozen=True, slots=True, kw_only=True)
class MessageQueued(_Message):
    """A route of the site wants the message to be sent."""

    kind: ClassVar = Kind.MESSAGE_QUEUED

    def __str__(self) -> str:
        return f"message {self.revision} to {self.channel} queued"


@dataclass(frozen=True, slots=True, kw_only=True)
class MessageIntended(_Message):
    """The message is about to be sent. Without a result, it may have been sent or not: it is sent again."""

    kind: ClassVar = Kind.MESSAGE_INTENDED

    def __str__(self) -> str:
        return f"about to send message {self.revision} to {self.channel}"


@dataclass(frozen=True, slots=True, kw_only=True)
class MessageSent(_Message):
    kind: ClassVar = Kind.MESSAGE_SENT

    def __str__(self) -> str:
        return f"message {self.revision} sent to {self.channel}"


@dataclass(frozen=True, slots=True, kw_only=True)
class MessageFailed(_Message):
    """`retry_at`: when the next attempt is due; None where there is none."""

    kind: ClassVar = Kind.MESSAGE_FAILED
    reason: str
    retry_at: datetime | None = None

    def __str__(self) -> str:
        then = f"next attempt at {self.retry_at.isoformat()}" if self.retry_at else "given up"
        return f"message {self.revision} to {self.channel} failed: {self.reason}; {then}"


@dataclass(frozen=True, slots=True, kw_only=True)
class AlertReceived(Payload):
    """An alert as Alertmanager has posted it. The subject of its event is the alert's fingerprint.

    group    identifies the group that Alertmanager has put it in
    node     the node that it is about; empty where its labels name none of the site's
    renewed  it is written again while it lasts: one that is not has ended
    """

    kind: ClassVar = Kind.ALERT_RECEIVED
    firing: bool
    name: str
    group: str
    severity: Severity
    starts_at: datetime
    place: str = ""
    node: str = ""
    summary: str = ""
    remedy: str = ""
    renewed: bool = False

    def __str__(self) -> str:
        return f"alert {self.name} {'firing' if self.firing else 'resolved'}: {self.summary}"


@dataclass(frozen=True, slots=True, kw_only=True)
class TicketIntended(Payload):
    """A ticket is about to be created (`key` is empty), noted or closed. Without a result: look there first.

    revision  of the incident that it is about
    """

    kind: ClassVar = Kind.TICKET_INTENDED
    revision: int
    key: str = ""

    def __str__(self) -> str:
        return f"about to change ticket {self.key}" if self.key else "about to create a ticket"


@dataclass(frozen=True, slots=True, kw_only=True)
class TicketFiled(Payload):
    """The ticket exists. `found`: it was there already, made by an attempt that had no result; `unattached`: its sheets
    are still to be attached.
    """

    kind: ClassVar = Kind.TICKET_FILED
    key: str
    url: str
    revision: int
    found: bool = False
    unattached: bool = False

    def __str__(self) -> str:
        return f"ticket {self.key} {'found' if self.found else 'created'}"


@dataclass(frozen=True, slots=True, kw_only=True)
class TicketAttached(Payload):
    """The ticket has its sheets, or not: `failure`. `retry_at`: when the next attempt is due; None: there is none."""

    kind: ClassVar = Kind.TICKET_ATTACHED
    failure: str = ""
    retry_at: datetime | None = None

    def __str__(self) -> str:
        then = f"next attempt at {self.retry_at.isoformat()}" if self.retry_at else "given up"
        return f"{self.failure}; {then}" if self.failure else "sheets attached to the ticket"


@dataclass(frozen=True, slots=True, kw_only=True)
class TicketNoted(Payload):
    """The ticket has a note about this revision, and all before it."""

    kind: ClassVar = Kind.TICKET_NOTED
    revision: int

    def __str__(self) -> str:
        return f"ticket updated, note {self.revision}"


@dataclass(frozen=True, slots=True, kw_only=True)
class TicketFailed(Payload):
    kind: ClassVar = Kind.TICKET_FAILED
    reason: str
    retry_at: datetime

    def __str__(self) -> str:
        return f"ticket failed: {self.reason}; next attempt at {self.retry_at.isoformat()}"


@dataclass(frozen=True, slots=True, kw_only=True)
class TicketSeen(Payload):
    """What was read of the ticket: whether it is closed."""

    kind: ClassVar = Kind.TICKET_SEEN
    closed: bool

    def __str__(self) -> str:
        return f"ticket is {'closed' if self.closed else 'open'}"


PAYLOADS: tuple[type[Payload], ...] = (
    IncidentOpened, IncidentUpdated, IncidentResolved, MessageQueued, MessageIntended, MessageSent, MessageFailed,
    AlertReceived, TicketIntended, TicketFiled, TicketAttached, TicketNoted, TicketFailed, TicketSeen,
)  # fmt: skip
