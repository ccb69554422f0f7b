"""Rows of the tables as events and node states. A stored state is always the fold of its node's events.

Commands that only read states do not import the fold. `move` and `rebuild` write the states of incidents, too.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TypeVar

from sqlalchemy import Connection, delete, insert, select

from clusterctl.edges.journal import incident_states
from clusterctl.edges.journal.integrity import COMPACT, JournalDamagedError, Row, checked_text, event_of, text_digest
from clusterctl.edges.journal.tables import event as events_table
from clusterctl.edges.journal.tables import node_state as states_table
from clusterctl.fleet.codec import state_from_json, state_to_json, summary_from_json, summary_to_json
from clusterctl.fleet.event import Event, Stream
from clusterctl.fleet.node import NodeId
from clusterctl.fleet.state import NodeState, NodeSummary

T = TypeVar("T")

_AT_ONCE = 500
"""Parameters of one query: SQLite of some builds takes no more than 999."""


def load(connection: Connection, nodes: Iterable[NodeId]) -> Mapping[NodeId, NodeState]:
    """Return the stored states of nodes, in their order; an empty one for each that the journal does not know."""
    found: dict[NodeId, NodeState] = {node: NodeState(node) for node in nodes}
    columns = (states_table.c.node, states_table.c.state, states_table.c.state_digest)
    for part in parts(found):
        rows = connection.execute(select(*columns).where(states_table.c.node.in_(part))).mappings()
        found |= {state.id: state for state in map(state_of, rows)}
    return found


def parts(items: Iterable[T]) -> Iterator[list[T]]:
    """Yield the items in lists that one query can take."""
    left = list(items)
    for start in range(0, len(left), _AT_ONCE):
        yield left[start : start + _AT_ONCE]


def state_of(row: Row) -> NodeState:
    """Return the state in a row with `node`, `state` and `state_digest`. Raise `JournalDamagedError` where it is not
    what was written.
    """
    where = f"node {row['node']}"
    state = state_from_json(checked_text(row["state"], row["state_digest"], where))
    if state.id != row["node"]:
        raise JournalDamagedError("the stored state is another node's", where=where, remedy=COMPACT)
    return state


def summary_of(node: str, summary: str, digest: str) -> NodeSummary:
    """Return the summary of a node from its text and its digest; raise as `state_of` does."""
    return summary_from_json(checked_text(summary, digest, f"node {node}"))


def move(connection: Connection, events: Sequence[Event]) -> None:
    """Apply `events` to the stored states of their nodes and incidents, in the events' own transaction."""
    from clusterctl.fleet.fold import apply

    incident_states.move(connection, events)
    of_nodes = [(NodeId(event.subject), event) for event in events if event.stream is Stream.NODE]
    moved = dict(load(connection, dict.fromkeys(node for node, _ in of_nodes)))
    for node, event in of_nodes:
        moved[node] = apply(moved[node], event)
    _save(connection, moved.values())


def rebuild(connection: Connection) -> None:
    """Write every state of a node or incident again from its events."""
    from clusterctl.fleet.fold import fold

    incident_states.rebuild(connection)
    connection.execute(delete(states_table))
    of_nodes = events_table.c.stream == Stream.NODE.value
    nodes = connection.execute(select(events_table.c.subject).where(of_nodes).distinct())
    for node in nodes.scalars().all():
        query = select(events_table).where(of_nodes, events_table.c.subject == node)
        rows = connection.execute(query.order_by(events_table.c.seq)).mappings().all()
        _save(connection, [fold((event_of(row) for row in rows), NodeId(node))])


def _save(connection: Connection, states: Iterable[NodeState]) -> None:
    for part in parts(states):
        connection.execute(delete(states_table).where(states_table.c.node.in_([state.id for state in part])))
        connection.execute(insert(states_table), [_row(state) for state in part])


def _row(state: NodeState) -> dict[str, object]:
    values = {"name": state.name or state.id, "stage": state.stage.value, "last_seq": state.last_seq}
    texts = {"summary": summary_to_json(state), "state": state_to_json(state)}
    digests = {f"{name}_digest": text_digest(text) for name, text in texts.items()}
    return {"node": state.id, **values, **texts, **digests}
