"""Rows of the table of incidents. A stored state is always the fold of its incident's events."""

from __future__ import annotations

from collections.abc import Iterable

from sqlalchemy import Connection, delete, insert, select

from clusterctl.edges.journal.integrity import COMPACT, JournalDamagedError, Row, checked_text, event_of, text_digest
from clusterctl.edges.journal.tables import event as events_table
from clusterctl.edges.journal.tables import incident_state as table
from clusterctl.fleet.codec import incident_from_json, incident_to_json
from clusterctl.fleet.event import Event, Stream
from clusterctl.fleet.incidents.fold import apply, fold
from clusterctl.fleet.incidents.incident import IncidentState


def load(connection: Connection, incident: str) -> IncidentState:
    """Return the stored state of an incident; an empty one where the journal does not know it."""
    row = connection.execute(select(table).where(table.c.incident == incident)).mappings().first()
    return IncidentState(incident) if row is None else state_of(row)


def load_all(connection: Connection, *, unfinished: bool) -> tuple[IncidentState, ...]:
    """Return the incidents in the order of their last events; `unfinished`: only those with something left to do."""
    query = select(table).order_by(table.c.last_seq)
    if unfinished:
        query = query.where(table.c.unfinished == 1)
    return tuple(state_of(row) for row in connection.execute(query).mappings().all())


def state_of(row: Row) -> IncidentState:
    """Return the state in a row. Raise `JournalDamagedError` where it is not what was written."""
    where = f"incident {row['incident']}"
    state = incident_from_json(checked_text(row["state"], row["state_digest"], where))
    if state.id != row["incident"]:
        raise JournalDamagedError("the stored state is another incident's", where=where, remedy=COMPACT)
    return state


def move(connection: Connection, events: Iterable[Event]) -> None:
    """Apply `events` to the stored states of their incidents, in the events' own transaction."""
    moved: dict[str, IncidentState] = {}
    for event in events:
        if event.stream is Stream.INCIDENT:
            moved[event.subject] = apply(moved.get(event.subject) or load(connection, event.subject), event)
    for state in moved.values():
        _save(connection, state)


def rebuild(connection: Connection) -> None:
    """Write every state again from its events."""
    connection.execute(delete(table))
    of_incidents = events_table.c.stream == Stream.INCIDENT.value
    incidents = connection.execute(select(events_table.c.subject).where(of_incidents).distinct())
    for incident in incidents.scalars().all():
        query = select(events_table).where(of_incidents, events_table.c.subject == incident)
        rows = connection.execute(query.order_by(events_table.c.seq)).mappings().all()
        _save(connection, fold((event_of(row) for row in rows), incident))


def _save(connection: Connection, state: IncidentState) -> None:
    connection.execute(delete(table).where(table.c.incident == state.id))
    text = incident_to_json(state)
    values = {"unfinished": int(state.unfinished), "last_seq": state.last_seq}
    digest = text_digest(text)
    connection.execute(insert(table).values(incident=state.id, **values, state=text, state_digest=digest))
