"""The stored node states: always the fold of the node's events, written in the events' own transaction."""

from __future__ import annotations

import json
from collections.abc import Iterable
from datetime import datetime

from sqlalchemy import Connection, delete, insert, select
from sqlalchemy.engine import RowMapping

from clusterctl.edges.journal.tables import event as events_table
from clusterctl.edges.journal.tables import node_state as states_table
from clusterctl.fleet.codec import state_from_json, state_to_json, summary_to_json
from clusterctl.fleet.errors import UsageError
from clusterctl.fleet.event import VERSIONS, Event, Kind
from clusterctl.fleet.finding import Digest
from clusterctl.fleet.fold import apply, fold
from clusterctl.fleet.node import NodeId
from clusterctl.fleet.state import NodeState

_KINDS = {kind.value: kind for kind in Kind}


def event_of(row: RowMapping) -> Event:
    kind = _kind(row)
    return Event(
        seq=row["seq"],
        stream=row["stream"],
        subject=row["subject"],
        kind=kind,
        version=row["version"],
        at=datetime.fromisoformat(row["at"]),
        run=row["run"],
        actor=row["actor"],
        data=json.loads(row["data"]),
        evidence=tuple(Digest(d) for d in json.loads(row["evidence"])),
    )


def _kind(row: RowMapping) -> Kind:
    """The event's kind, unless a newer program wrote it."""
    kind = _KINDS.get(row["kind"])
    if kind is not None and row["version"] <= VERSIONS[kind]:
        return kind
    raise UsageError(
        f"the journal holds an event {row['kind']} version {row['version']} that this clusterctl does not know",
        where=f"event {row['seq']}",
        remedy="use the newer clusterctl that wrote it",
    )


def load(connection: Connection, node: NodeId) -> NodeState:
    row = connection.execute(select(states_table.c.state).where(states_table.c.node == node)).scalar()
    return NodeState(node) if row is None else state_from_json(row)


def move(connection: Connection, events: Iterable[Event]) -> None:
    """Take the states of all nodes that `events` speak of along."""
    moved: dict[NodeId, NodeState] = {}
    for event in events:
        if event.stream == "node":
            node = NodeId(event.subject)
            moved[node] = apply(moved.get(node) or load(connection, node), event)
    for state in moved.values():
        _save(connection, state)


def rebuild(connection: Connection) -> None:
    """Write every node state anew from its events."""
    connection.execute(delete(states_table))
    nodes = connection.execute(select(events_table.c.subject).where(events_table.c.stream == "node").distinct())
    for node in nodes.scalars().all():
        query = select(events_table).where(events_table.c.stream == "node", events_table.c.subject == node)
        rows = connection.execute(query.order_by(events_table.c.seq)).mappings().all()
        _save(connection, fold((event_of(row) for row in rows), NodeId(node)))


def _save(connection: Connection, state: NodeState) -> None:
    connection.execute(delete(states_table).where(states_table.c.node == state.id))
    values = {"name": state.name or state.id, "stage": state.stage.value, "last_seq": state.last_seq}
    texts = {"summary": summary_to_json(state), "state": state_to_json(state)}
    connection.execute(insert(states_table).values(node=state.id, **values, **texts))
