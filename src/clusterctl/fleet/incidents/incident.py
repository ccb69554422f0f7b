"""An incident: what is wrong, where, since when and with which nodes or links; and the messages about it."""

from __future__ import annotations

import enum
import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from clusterctl.fleet.finding import Digest
from clusterctl.fleet.peer_text import visible_line

MAX_TEXT = 1000
"""Characters of one text of an incident."""
SITE = "site"
"""Place of an incident in several racks."""
_ID_DIGITS = 10


class IncidentKind(enum.StrEnum):
    """What an incident is about."""

    NODES = "nodes"
    LINKS = "links"
    FABRIC = "fabric"
    NIGHT = "night"
    ALERT = "alert"
    CONTROLLER = "controller"


class Severity(enum.StrEnum):
    """How urgent an incident is: routes of messages can ask for critical ones only."""

    WARNING = "warning"
    CRITICAL = "critical"


class Phase(enum.StrEnum):
    """Which change of an incident a message is about."""

    OPENED = "opened"
    UPDATED = "updated"
    RESOLVED = "resolved"


@dataclass(frozen=True, slots=True, kw_only=True)
class Member:
    """A node, link, device or alert of an incident. `active` False: it is released or healthy again.

    node      the name of the node, where the member is one or belongs to one
    place     rack and unit, as text
    evidence  of its findings
    """

    name: str
    node: str = ""
    serial: str = ""
    place: str = ""
    cause: str = ""
    remedy: str = ""
    since: datetime | None = None
    active: bool = True
    evidence: tuple[Digest, ...] = ()

    def __post_init__(self) -> None:
        """Make the texts visible, bounded lines: peers report them."""
        for name in ("name", "node", "serial", "place", "cause", "remedy"):
            object.__setattr__(self, name, visible_line(getattr(self, name), MAX_TEXT))


@dataclass(frozen=True, slots=True, kw_only=True)
class IncidentFacts:
    """What is known of an incident at one moment.

    code   the cause: a code of findings, a kind of bad link, the name of an alert
    place  a rack, a switch, a node or `site`
    fault  the identity that findings of several nodes share; empty where there is none
    """

    what: IncidentKind
    code: str
    place: str
    cause: str
    remedy: str = ""
    severity: Severity = Severity.WARNING
    fault: str = ""
    members: tuple[Member, ...] = ()

    def __post_init__(self) -> None:
        for name in ("code", "place", "cause", "remedy"):
            object.__setattr__(self, name, visible_line(getattr(self, name), MAX_TEXT))

    @property
    def active(self) -> tuple[Member, ...]:
        return tuple(member for member in self.members if member.active)

    @property
    def key(self) -> tuple[IncidentKind, str, str]:
        """Return a key that is equal for the same cause at the same place."""
        return self.what, self.code, self.place

    @property
    def identity(self) -> tuple[IncidentKind, str, str]:
        """Return a key that stays the same as long as the incident lasts, also where its place changes."""
        return self.what, self.code, self.fault or self.place


def incident_id(facts: IncidentFacts, anchor: str) -> str:
    """Return the id of an incident. `anchor`: what distinguishes it from a later one of the same key."""
    text = "\n".join((*facts.key, facts.fault, anchor))
    return f"inc-{hashlib.sha256(text.encode('utf-8', 'surrogatepass')).hexdigest()[:_ID_DIGITS]}"


@dataclass(frozen=True, slots=True)
class Delivery:
    """Messages about an incident to one channel.

    wanted    the revision of the incident that the channel is to learn; `sent` the last one that it was sent
    attempts  since `wanted` was set
    retry_at  when the next attempt is due
    failure   of the last attempt; empty where it succeeded
    """

    wanted: int
    sent: int = 0
    attempts: int = 0
    retry_at: datetime | None = None
    failure: str = ""
    given_up: bool = False

    @property
    def pending(self) -> bool:
        return self.wanted > self.sent and not self.given_up

    def due(self, now: datetime) -> bool:
        return self.pending and (self.retry_at is None or now >= self.retry_at)


@dataclass(frozen=True, slots=True)
class TicketState:
    """The ticket of an incident.

    key, url     empty before it is filed
    revision     of the incident that it has a note about; 0: none
    intended_at  when something was begun that has no result yet, about revision `intended`; None where there is nothing
    attempts     that failed since the last one that did not
    retry_at     when the next attempt is due
    settled      the revision at which it was last seen closed; 0: never
    unattached   its sheets are still to be attached: after `attach_at`, so many attempts failed, the last by
                 `attach_failure`
    """

    key: str = ""
    url: str = ""
    revision: int = 0
    closed: bool = False
    intended_at: datetime | None = None
    intended: int = 0
    attempts: int = 0
    retry_at: datetime | None = None
    failure: str = ""
    settled: int = 0
    unattached: bool = False
    attach_attempts: int = 0
    attach_at: datetime | None = None
    attach_failure: str = ""

    def due(self, now: datetime) -> bool:
        return self.retry_at is None or now >= self.retry_at

    def attach_due(self, now: datetime) -> bool:
        return self.unattached and (self.attach_at is None or now >= self.attach_at)

    def to_resolve(self, state: IncidentState, *, closed: bool) -> bool:
        """Return whether the ticket, as it was just read, is open although its incident is resolved, and was not closed
        since.
        """
        return state.phase is Phase.RESOLVED and not closed and self.settled < state.revision


@dataclass(frozen=True, slots=True)
class IncidentState:
    """An incident after all of its events. `facts` is None before its first one.

    revision    counts what changed, from 1; a message names it
    change      what the last update changed; why it was resolved
    deliveries  by channel
    ticket      one without a key where none is filed
    resolved_by the operator who resolved it by hand; empty otherwise
    still_seen  an operator resolved it, and what it is about was not seen to end since: nothing of it opens another one
    """

    id: str
    facts: IncidentFacts | None = None
    opened_at: datetime | None = None
    updated_at: datetime | None = None
    resolved_at: datetime | None = None
    revision: int = 0
    change: str = ""
    deliveries: Mapping[str, Delivery] = field(default_factory=dict)
    ticket: TicketState = TicketState()
    last_seq: int = 0
    resolved_by: str = ""
    still_seen: bool = False

    @property
    def open(self) -> bool:
        return self.facts is not None and self.resolved_at is None

    @property
    def unfinished(self) -> bool:
        """Return whether something of it is left to do: it is open, its ticket is, messages are to be sent, or its end
        is to be seen.
        """
        waits = any(delivery.pending for delivery in self.deliveries.values())
        return self.open or waits or self.ticket_open or self.still_seen

    @property
    def ticket_open(self) -> bool:
        """Return whether it has a ticket that is open, or that lacks a note."""
        ticket = self.ticket
        return bool(ticket.key) and (not ticket.closed or ticket.revision < self.revision)

    @property
    def phase(self) -> Phase:
        if self.resolved_at is not None:
            return Phase.RESOLVED
        return Phase.OPENED if self.revision <= 1 else Phase.UPDATED

    def delivery(self, channel: str) -> Delivery:
        """Return the channel's deliveries; where there are none, one that wants nothing."""
        return self.deliveries.get(channel) or Delivery(0)

    def with_delivery(self, channel: str, delivery: Delivery) -> IncidentState:
        return replace(self, deliveries={**self.deliveries, channel: delivery})


_FIRST_RETRY = timedelta(seconds=30)
_LAST_RETRY = timedelta(hours=1)


def retry_after(attempts: int) -> timedelta:
    """Return how long to wait after so many failed attempts: 30 s, doubled each time, one hour at most."""
    doubled: timedelta = _FIRST_RETRY * 2 ** max(0, min(attempts - 1, 10))
    return min(doubled, _LAST_RETRY)
