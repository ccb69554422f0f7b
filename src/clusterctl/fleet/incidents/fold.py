"""The fold of the stream `incident`: the state of an incident from its events."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from functools import singledispatch

from clusterctl.fleet.event import Event, Payload
from clusterctl.fleet.incidents.incident import IncidentState, TicketState
from clusterctl.fleet.payloads.incidents import (
    IncidentOpened,
    IncidentResolved,
    IncidentUpdated,
    MessageFailed,
    MessageIntended,
    MessageQueued,
    MessageSent,
    TicketAttached,
    TicketFailed,
    TicketFiled,
    TicketIntended,
    TicketNoted,
    TicketSeen,
)


def fold(events: Iterable[Event], incident: str) -> IncidentState:
    """Return the state of `incident` after `events` (its own, in `seq` order)."""
    state = IncidentState(incident)
    for event in events:
        state = apply(state, event)
    return state


def apply(state: IncidentState, event: Event) -> IncidentState:
    """Return the state after one more event."""
    return replace(_applied(event.payload, state, event), last_seq=event.seq)


@singledispatch
def _applied(_payload: Payload, state: IncidentState, _event: Event) -> IncidentState:
    """Return the state as it is: the event changes nothing of it."""
    return state


@_applied.register
def _opened(payload: IncidentOpened, state: IncidentState, event: Event) -> IncidentState:
    return replace(
        state,
        facts=payload.facts,
        opened_at=state.opened_at or event.at,
        updated_at=event.at,
        resolved_at=None,
        revision=state.revision + 1,
        change="",
        resolved_by="",
        still_seen=False,
    )


@_applied.register
def _updated(payload: IncidentUpdated, state: IncidentState, event: Event) -> IncidentState:
    return replace(state, facts=payload.facts, updated_at=event.at, revision=state.revision + 1, change=payload.change)


@_applied.register
def _resolved(payload: IncidentResolved, state: IncidentState, event: Event) -> IncidentState:
    if state.resolved_at is not None:
        return replace(state, still_seen=False)  # its end, after an operator had resolved it
    return replace(
        state,
        updated_at=event.at,
        resolved_at=event.at,
        revision=state.revision + 1,
        change=f"by {event.actor}: {payload.reason}" if payload.by_hand else payload.reason,
        resolved_by=event.actor if payload.by_hand else "",
        still_seen=payload.by_hand,
    )


@_applied.register
def _queued(payload: MessageQueued, state: IncidentState, _event: Event) -> IncidentState:
    """Want the newest revision: a channel that could not be reached gets one message about all that changed."""
    before = state.delivery(payload.channel)
    wanted = replace(
        before, wanted=max(before.wanted, payload.revision), attempts=0, retry_at=None, failure="", given_up=False
    )
    return state.with_delivery(payload.channel, wanted)


@_applied.register
def _intended(payload: MessageIntended, state: IncidentState, _event: Event) -> IncidentState:
    before = state.delivery(payload.channel)
    return state.with_delivery(payload.channel, replace(before, attempts=before.attempts + 1))


@_applied.register
def _sent(payload: MessageSent, state: IncidentState, _event: Event) -> IncidentState:
    before = state.delivery(payload.channel)
    return state.with_delivery(payload.channel, replace(before, sent=max(before.sent, payload.revision), failure=""))


@_applied.register
def _failed(payload: MessageFailed, state: IncidentState, _event: Event) -> IncidentState:
    failed = replace(
        state.delivery(payload.channel),
        failure=payload.reason,
        retry_at=payload.retry_at,
        given_up=payload.retry_at is None,
    )
    return state.with_delivery(payload.channel, failed)


@_applied.register
def _ticket_intended(payload: TicketIntended, state: IncidentState, event: Event) -> IncidentState:
    return replace(state, ticket=replace(state.ticket, intended_at=event.at, intended=payload.revision))


@_applied.register
def _ticket_filed(payload: TicketFiled, state: IncidentState, _event: Event) -> IncidentState:
    return replace(state, ticket=TicketState(payload.key, payload.url, payload.revision, unattached=payload.unattached))


@_applied.register
def _ticket_attached(payload: TicketAttached, state: IncidentState, _event: Event) -> IncidentState:
    attached = replace(
        state.ticket,
        unattached=payload.retry_at is not None,
        attach_attempts=state.ticket.attach_attempts + 1 if payload.failure else 0,
        attach_at=payload.retry_at,
        attach_failure=payload.failure,
    )
    return replace(state, ticket=attached)


@_applied.register
def _ticket_noted(payload: TicketNoted, state: IncidentState, _event: Event) -> IncidentState:
    settled = payload.revision if state.ticket.closed else state.ticket.settled
    return replace(state, ticket=replace(_done(state.ticket), revision=payload.revision, settled=settled))


@_applied.register
def _ticket_failed(payload: TicketFailed, state: IncidentState, _event: Event) -> IncidentState:
    """Keep an open intent: a request that failed may have been carried out."""
    attempts = state.ticket.attempts + 1
    failed = replace(state.ticket, attempts=attempts, retry_at=payload.retry_at, failure=payload.reason)
    return replace(state, ticket=failed)


@_applied.register
def _ticket_seen(payload: TicketSeen, state: IncidentState, _event: Event) -> IncidentState:
    settled = state.revision if payload.closed else state.ticket.settled
    return replace(state, ticket=replace(_done(state.ticket), closed=payload.closed, settled=settled))


def _done(ticket: TicketState) -> TicketState:
    return replace(ticket, intended_at=None, attempts=0, retry_at=None, failure="")
