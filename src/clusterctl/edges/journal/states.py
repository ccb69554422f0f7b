"""Rows of the tables as events and node states. A stored state is always the fold of its node's events."""

from __future__ import annotations

import json
from collections.abc import Iterable
from datetime import datetime

from sqlalchemy import Connection, delete, insert, select
from sqlalchemy.engine import RowMapping

from clusterctl.edges.journal.tables import event as events_table
from clusterctl.edges.journal.tables import node_state as states_table
from clusterctl.fleet.codec import payload_from_json, state_from_json, state_to_json, summary_to_json
from clusterctl.fleet.event import Event, Stream
from clusterctl.fleet.finding import Digest
from clusterctl.fleet.fold import apply, fold
from clusterctl.fleet.node import NodeId
from clusterctl.fleet.state import NodeState


def event_of(row: RowMapping) -> Event:
    """Return a row of the event table as an event. Raise what `payload_from_json` raises for a payload."""
    return Event(
        seq=row["seq"],
        stream=Stream(row["stream"]),
        subject=row["subject"],
        at=datetime.fromisoformat(row["at"]),
        run=row["run"],
        actor=row["actor"],
        payload=payload_from_json(row["seq"], row["kind"], row["version"], row["data"]),
        evidence=tuple(Digest(digest) for digest in json.loads(row["evidence"])),
    )


def load(connection: Connection, node: NodeId) -> NodeState:
    """Return the stored state of a node; an empty one where the journal does not know it."""
    row = connection.execute(select(states_table.c.state).where(states_table.c.node == node)).scalar()
    return NodeState(node) if row is None else state_from_json(row)


def move(connection: Connection, events: Iterable[Event]) -> None:
    """Apply `events` to the stored states of their nodes, in the events' own transaction."""
    moved: dict[NodeId, NodeState] = {}
    for event in events:
        if event.stream is Stream.NODE:
            node = NodeId(event.subject)
            moved[node] = apply(moved.get(node) or load(connection, node), event)
    for state in moved.values():
        _save(connection, state)


def rebuild(connection: Connection) -> None:
    """Write every node state again from its events."""
    connection.execute(delete(states_table))
    of_nodes = events_table.c.stream == Stream.NODE.value
    nodes = connection.execute(select(events_table.c.subject).where(of_nodes).distinct())
    for node in nodes.scalars().all():
        query = select(events_table).where(of_nodes, events_table.c.subject == node)
        rows = connection.execute(query.order_by(events_table.c.seq)).mappings().all()
        _save(connection, fold((event_of(row) for row in rows), NodeId(node)))


def _save(connection: Connection, state: NodeState) -> None:
    connection.execute(delete(states_table).where(states_table.c.node == state.id))
    values = {"name": state.name or state.id, "stage": state.stage.value, "last_seq": state.last_seq}
    texts = {"summary": summary_to_json(state), "state": state_to_json(state)}
    connection.execute(insert(states_table).values(node=state.id, **values, **texts))
