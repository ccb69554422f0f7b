"""Tickets of incidents: one each, created once, with a note about each change; a closed one offers a release.

An intent is written before a ticket or a note, a result after it. Where there is no result, the ticket system is
searched for the incident's marker before anything is created again, and for `SETTLE` nothing is: its search may be
behind. One pass runs at a time: it renews its claim, and each event and request needs it.
"""

from __future__ import annotations

import logging
import shlex
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta

from clusterctl.edges.clock import CLOCK
from clusterctl.fleet.errors import CancelledError, ClaimLostError, ClusterctlError, EnvironmentBrokenError, UsageError
from clusterctl.fleet.event import NewEvent, Payload, Stream
from clusterctl.fleet.finding import Digest
from clusterctl.fleet.incidents.incident import IncidentFacts, IncidentState, retry_after
from clusterctl.fleet.incidents.ticket_text import (
    Exhibit,
    bounded_sheet,
    note_marker,
    note_text,
    ticket_text,
)
from clusterctl.fleet.node import NodeId, Stage
from clusterctl.fleet.payloads.incidents import (
    TicketAttached,
    TicketFailed,
    TicketFiled,
    TicketIntended,
    TicketNoted,
    TicketSeen,
)
from clusterctl.fleet.reporting.work_orders import WorkOrder
from clusterctl.fleet.state import NodeState
from clusterctl.operations import incidents
from clusterctl.operations.context import SiteContext
from clusterctl.operations.excerpts import excerpt
from clusterctl.operations.incidents import IncidentUpdate
from clusterctl.operations.reports import site_work_orders
from clusterctl.ports import Claim, Deadline
from clusterctl.ports.tickets import Ticket, Tickets
from clusterctl.site.tickets import TicketSettings
from clusterctl.steps.executor.lease import Lease, boot_seconds, sole_claim

log = logging.getLogger(__name__)

CLAIM = NodeId("tickets")
SETTLE = timedelta(minutes=5)
SECONDS = 600.0
MOST_SHEETS = 10
MOST_EXHIBITS = 5
SHEET_ATTEMPTS = 10
"""To attach the sheets of one ticket: a system may take no files at all."""

Sheet = Callable[[NodeState], str]
"""Returns the vendor's sheet of a node as Markdown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SyncedTicket:
    """What was done with the ticket of an incident. `failure` is empty where nothing failed.

    release  the command that a closed ticket offers; empty where there is none
    """

    incident: str
    key: str = ""
    url: str = ""
    did: tuple[str, ...] = ()
    closed: bool = False
    release: str = ""
    failure: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class TicketResult:
    """Each incident with a ticket, or that should have one."""

    incidents: IncidentUpdate
    tickets: tuple[SyncedTicket, ...] = ()

    @property
    def exit_code(self) -> int:
        """1 where the ticket system did not do what was asked."""
        return 1 if any(one.failure for one in self.tickets) else 0


def run(
    context: SiteContext,
    sheet: Sheet,
    tickets: Tickets | None = None,
    settle: timedelta = SETTLE,
    now: Callable[[], float] = boot_seconds,
) -> TicketResult:
    """Bring incidents and their tickets up to date. Raise `UsageError` where the site has no ticket system, or another
    process does the same.

    sheet    renders a node's sheet, which is attached
    tickets  the site's ticket system by default
    now      seconds since boot: the age of the claim
    """
    settings = _settings(context)
    system = tickets or _system(context, settings)
    changed = incidents.update(context)
    cancelled = threading.Event()
    with sole_claim(context.journal, CLAIM, context.run, cancelled.set) as claim:
        lease = Lease(context.journal, {CLAIM: claim}, now)
        deadline = Deadline.after(SECONDS, cancelled).fenced(lease.fence([CLAIM]))
        work = _Sync(context, settings, system, sheet, settle, claim, deadline)
        done = list(work.all())
    states = {state.id: state for state in context.journal.incidents()}
    found = tuple(_with_ticket(context, one, states[one.incident]) for one in done)
    return TicketResult(incidents=changed, tickets=found)


def _with_ticket(context: SiteContext, one: SyncedTicket, state: IncidentState) -> SyncedTicket:
    """Return what was done, with the ticket as it is afterwards."""
    ticket = state.ticket
    offer = release_offer(context, state)
    return replace(one, key=ticket.key, url=ticket.url, closed=ticket.closed, release=offer)


def release_offer(context: SiteContext, state: IncidentState) -> str:
    """Return the command that releases the nodes of an incident with a closed ticket; empty where there is nothing to
    release. It is never run by itself.
    """
    if not state.ticket.closed or not state.open or state.facts is None:
        return ""
    names = {member.node for member in state.facts.active if member.node}
    waiting = [node.name for node in context.summaries(names) if node.stage is Stage.QUARANTINED]
    if not waiting:
        return ""
    reason = shlex.quote(f"ticket {state.ticket.key} closed: …")
    return f"clusterctl release {shlex.join(waiting)} --reason {reason}"


def _settings(context: SiteContext) -> TicketSettings:
    if context.site.settings.tickets is None:
        remedy = "add tickets: {kind: jira, …} (docs/how-to/tickets.md)"
        raise UsageError("the site has no ticket system", where=context.site.where("tickets"), remedy=remedy)
    return context.site.settings.tickets


def _system(context: SiteContext, settings: TicketSettings) -> Tickets:
    from clusterctl.operations.channels import ticket_system

    return ticket_system(context.site, settings)


@dataclass(frozen=True, slots=True)
class _Sync:
    """One pass over the incidents."""

    context: SiteContext
    settings: TicketSettings
    tickets: Tickets
    sheet: Sheet
    settle: timedelta
    claim: Claim
    deadline: Deadline

    def all(self) -> Iterator[SyncedTicket]:
        """Do what each incident needs; the next pass goes on where the time is over."""
        for listed in self.context.journal.incidents(unfinished=True):
            if self.deadline.remaining <= 0:
                return
            state = incidents.current(self.context, listed.id)  # a pass takes minutes: what was listed may be old
            done = self.one(state, state.facts) if state.facts is not None else None
            if done is not None:
                yield done

    def one(self, state: IncidentState, facts: IncidentFacts) -> SyncedTicket | None:
        """Do what one incident needs; None where it needs no ticket."""
        if not state.ticket.key and not (state.open and facts.what.value in self.settings.incidents):
            return None
        did: list[str] = []
        failure = state.ticket.failure
        if state.ticket.due(CLOCK.now()):
            try:
                did += self._step(state, facts)
                failure = ""
            except (ClaimLostError, CancelledError):
                raise
            except ClusterctlError as error:
                failure = str(error)
                retry_at = CLOCK.now() + retry_after(state.ticket.attempts + 1)
                self._write(state, TicketFailed(reason=failure, retry_at=retry_at))
        unattached = self._attach(incidents.current(self.context, state.id), facts)
        return SyncedTicket(incident=state.id, did=tuple(did), failure=failure or unattached)

    def _step(self, state: IncidentState, facts: IncidentFacts) -> Iterator[str]:
        if not state.ticket.key:
            yield self._file(state, facts)
            return
        if state.ticket.revision < state.revision:
            yield self._note(state, facts)
        seen = self.tickets.read(state.ticket.key, self.deadline)
        if seen.closed != state.ticket.closed or state.ticket.failure:
            self._write(state, TicketSeen(closed=seen.closed))
        if seen.closed != state.ticket.closed:
            yield "closed" if seen.closed else "opened again"
        if self.settings.close_resolved and state.ticket.to_resolve(state, closed=seen.closed):
            yield self._resolve(state)

    def _file(self, state: IncidentState, facts: IncidentFacts) -> str:
        """Create the ticket, unless an earlier attempt has, or another process in this moment."""
        found = self._found(state)
        began = state.ticket.intended_at
        if found is None and began is not None and CLOCK.now() - began < self.settle:
            return "waits until the ticket system shows what an earlier attempt has created"
        if found is None:
            text = ticket_text(
                state, facts, self.context.site.settings.name, self._orders(facts), self._exhibits(facts)
            )
            self._write(state, TicketIntended(revision=state.revision))
            found = self._found(state)
            if found is None:
                made = self.tickets.create(text, self.deadline)
                self._write(state, TicketFiled(key=made.key, url=made.url, revision=state.revision, unattached=True))
                return "created"
        revision = state.ticket.intended
        self._write(state, TicketFiled(key=found.key, url=found.url, revision=revision, found=True, unattached=True))
        return "found"

    def _found(self, state: IncidentState) -> Ticket | None:
        return self.tickets.find(state.id, state.opened_at or CLOCK.now(), self.deadline)

    def _attach(self, state: IncidentState, facts: IncidentFacts) -> str:
        """Attach the sheets that the ticket lacks; return what failed. The ticket itself goes on without them."""
        ticket = state.ticket
        if not ticket.key or not ticket.attach_due(CLOCK.now()):
            return ticket.attach_failure if ticket.unattached else ""
        failures = list(self._attachments(ticket.key, facts))
        failure = f"a sheet was not attached: {failures[0]}" if failures else ""
        last = not failures or ticket.attach_attempts + 1 >= SHEET_ATTEMPTS
        retry_at = None if last else CLOCK.now() + retry_after(ticket.attach_attempts + 1)
        self._write(state, TicketAttached(failure=failure, retry_at=retry_at))
        return failure

    def _attachments(self, key: str, facts: IncidentFacts) -> Iterator[str]:
        """Attach each sheet, unless the ticket has it; yield what failed."""
        for name, node in self._nodes(facts):
            try:
                sheet = bounded_sheet(name, self.sheet(self.context.journal.state(node)))
                self.tickets.attach(key, sheet, self.deadline)
            except (ClaimLostError, CancelledError):
                raise
            except ClusterctlError as error:
                yield str(error)

    def _resolve(self, state: IncidentState) -> str:
        """Close the ticket of a resolved incident, once: who opens it again keeps it open."""
        self._write(state, TicketIntended(revision=state.revision, key=state.ticket.key))
        self.tickets.resolve(state.ticket.key, self.deadline)
        self._write(state, TicketSeen(closed=True))
        return "resolved"

    def _note(self, state: IncidentState, facts: IncidentFacts) -> str:
        """Write a note about the newest revision, unless an attempt without a result has."""
        key = state.ticket.key
        begun = state.ticket.intended_at is not None
        if not begun or not self.tickets.has_note(key, note_marker(state), self.deadline):
            self._write(state, TicketIntended(revision=state.revision, key=key))
            self.tickets.note(key, note_text(state, facts), self.deadline)
        self._write(state, TicketNoted(revision=state.revision))
        return f"note {state.revision}"

    def _orders(self, facts: IncidentFacts) -> Sequence[WorkOrder]:
        """Return the work orders of the incident's nodes."""
        names = {member.node for member in facts.active if member.node}
        if not names:
            return ()
        orders = site_work_orders(self.context).orders
        return [order for order in orders if any(node.name in names for node in order.nodes)]

    def _nodes(self, facts: IncidentFacts) -> Iterator[tuple[str, NodeId]]:
        """Yield name and id of the nodes with a sheet."""
        known = {node.name: node.id for node in self.context.journal.summaries()}
        for name in [member.node for member in facts.active if member.node][:MOST_SHEETS]:
            if name in known:
                yield name, known[name]

    def _exhibits(self, facts: IncidentFacts) -> list[Exhibit]:
        """Return excerpts of the evidence of the first members; none where the journal cannot read it."""
        wanted: dict[Digest, tuple[str, ...]] = {}
        for member in facts.active:
            for digest in member.evidence[:1]:
                wanted.setdefault(digest, (member.serial, member.name))
        try:
            found = self.context.evidence(list(wanted)[:MOST_EXHIBITS])
        except EnvironmentBrokenError as error:
            log.warning("the ticket of %s has no evidence: %s", facts.cause, error)
            return []
        return [
            Exhibit(command=item.source, where=item.where, text=excerpt(item.content, wanted[digest]))
            for digest, item in found.items()
        ]

    def _write(self, state: IncidentState, payload: Payload) -> None:
        self.context.journal.append([NewEvent(Stream.INCIDENT, state.id, payload)], claim=self.claim)
