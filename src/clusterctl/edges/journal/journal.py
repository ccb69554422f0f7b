"""`SqlJournal`: one writer at a time, every append and the states it changes in one transaction."""

from __future__ import annotations

import itertools
import json
import uuid
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any, TypeVar

from sqlalchemy import Connection, RowMapping, Select, func, insert, select, text

from clusterctl.edges.journal import claims, incident_states, states
from clusterctl.edges.journal.claims import Holder
from clusterctl.edges.journal.database import RECONNECT_S, Database, bring_up, connect
from clusterctl.edges.journal.integrity import chained, event_of, packed, removed, unpacked
from clusterctl.edges.journal.replica import Reads, ReplicaReads
from clusterctl.edges.journal.tables import event as events_table
from clusterctl.edges.journal.tables import evidence as evidence_table
from clusterctl.edges.journal.tables import node_state as states_table
from clusterctl.fleet.codec import payload_to_json
from clusterctl.fleet.event import Event, Kind, NewEvent, Stream
from clusterctl.fleet.finding import Digest, Evidence
from clusterctl.fleet.incidents.incident import IncidentState
from clusterctl.fleet.node import NodeId
from clusterctl.fleet.state import NodeState, NodeSummary
from clusterctl.ports.deadline import Clock
from clusterctl.ports.journal import Claim, ClaimOwner, Claims, JournalHealth

_SIZE = {
    "sqlite": text("SELECT page_count * page_size FROM pragma_page_count, pragma_page_size"),
    "postgresql": text("SELECT pg_database_size(current_database())"),
}
"""Engine → what returns the bytes of its database."""

T = TypeVar("T")


def open_journal(
    url: str, clock: Clock, holder: Holder | None = None, *, reconnect_s: float = RECONNECT_S, replica: str = ""
) -> SqlJournal:
    """Open (and create or migrate) the journal at a SQLAlchemy URL; only its owner may read a SQLite file.

    `holder` takes the claims. `reconnect_s` limits the wait for a server that does not answer any more; a run that a
    worker has taken waits for it from the start: the worker's own journal has answered before. `replica`: the URL of a
    standby, which answers all reads while it can; it may be some moments behind.
    """
    database = connect(url, reconnect_s)
    bring_up(database, waits=holder is not None and holder.under is not None)
    reads = ReplicaReads(connect(replica, 0.0), database) if replica else database
    return SqlJournal(database, clock, holder or Holder(), reads)


_AT_ONCE = 500
"""Parameters of one query: SQLite of some builds takes no more than 999."""


class SqlJournal:
    """Meets `ports.Journal`. Thread-safe."""

    def __init__(self, database: Database, clock: Clock, holder: Holder, reads: Reads | None = None) -> None:
        self._database = database
        self._reads = reads or database
        self._clock = clock
        self._holder = holder
        self._key = uuid.uuid4().hex
        self._numbers = itertools.count()

    def append(self, events: Sequence[NewEvent], *, claim: Claim | None = None) -> tuple[Event, ...]:
        keys = [f"{self._key}-{next(self._numbers)}" for _ in events]

        def write(connection: Connection) -> tuple[Event, ...]:
            for needed in (self._holder.under, claim):
                if needed is not None:
                    claims.check(connection, needed)
            rows = chained(connection, [self._row(new, key) for new, key in zip(events, keys, strict=True)])
            written = tuple(event_of(_inserted(connection, row)) for row in rows)
            states.move(connection, written)
            return written

        def written_before(connection: Connection) -> tuple[Event, ...] | None:
            query = select(events_table).where(events_table.c.idempotency_key.in_(keys)).order_by(events_table.c.seq)
            return tuple(event_of(row) for row in connection.execute(query).mappings()) or None

        return self._database.write(write, recover=written_before)

    def store(self, evidence: Iterable[Evidence]) -> None:
        items = {item.digest: item for item in evidence}

        def write(connection: Connection) -> None:
            query = select(evidence_table.c.digest).where(evidence_table.c.digest.in_(list(items)))
            known = frozenset(connection.execute(query).scalars())
            for digest, item in items.items():
                if digest not in known:
                    connection.execute(insert(evidence_table).values(digest=digest, **packed(item)))

        if items:
            self._database.write(write)

    def evidence(self, digest: Digest) -> Evidence | None:
        query = select(evidence_table).where(evidence_table.c.digest == digest)
        row = self._reads.read(lambda connection: connection.execute(query).mappings().first())
        return None if row is None or removed(row) else unpacked(row)

    def evidences(self, digests: Iterable[Digest]) -> Mapping[Digest, Evidence]:
        wanted = dict.fromkeys(digests)
        found: dict[Digest, Evidence] = {}
        for part in _parts(wanted):
            found |= self._evidences(part)
        return {digest: found[digest] for digest in wanted if digest in found}

    def _evidences(self, digests: Sequence[Digest]) -> Mapping[Digest, Evidence]:
        query = select(evidence_table).where(evidence_table.c.digest.in_(digests))
        rows = self._reads.read(lambda connection: connection.execute(query).mappings().all())
        return {Digest(row["digest"]): unpacked(row) for row in rows if not removed(row)}

    def states(self, since: int = 0) -> tuple[NodeState, ...]:
        columns = (states_table.c.node, states_table.c.state, states_table.c.state_digest)
        query = select(*columns).order_by(states_table.c.name)
        if since:  # not a condition of all: a damaged `last_seq` would hide its node
            query = query.where(states_table.c.last_seq > since)
        return tuple(map(states.state_of, self._rows(query)))

    def each_state(self, without: Collection[NodeId] = ()) -> Iterator[NodeState]:
        columns = (states_table.c.node, states_table.c.state, states_table.c.state_digest)
        for part in _parts(name for name, node in self.names().items() if node not in without):
            query = select(*columns).where(states_table.c.name.in_(part)).order_by(states_table.c.name)
            yield from map(states.state_of, self._rows(query))

    def _rows(self, query: Select[Any]) -> Sequence[RowMapping]:
        return self._reads.read(lambda connection: connection.execute(query).mappings().all())

    def state_versions(self, since: int = 0) -> Mapping[NodeId, str]:
        """Ask twice: SQLite finds the digests in an index, and no `last_seq` behind a long state."""
        numbers = select(states_table.c.node, states_table.c.last_seq)
        if since:
            numbers = numbers.where(states_table.c.last_seq > since)
        digests = select(states_table.c.node, states_table.c.summary_digest)

        def read(connection: Connection) -> Mapping[NodeId, str]:
            known = dict(connection.execute(digests).tuples().all())
            return {NodeId(node): f"{seq} {known[node]}" for node, seq in connection.execute(numbers)}

        return self._reads.snapshot(read)

    def names(self) -> Mapping[str, NodeId]:
        query = select(states_table.c.name, states_table.c.node).order_by(states_table.c.name)
        rows = self._reads.read(lambda connection: connection.execute(query).all())
        return {name: NodeId(node) for name, node in rows}

    def summaries(self, since: int = 0) -> tuple[NodeSummary, ...]:
        columns = (states_table.c.node, states_table.c.summary, states_table.c.summary_digest)
        query = select(*columns).order_by(states_table.c.name)
        if since:
            query = query.where(states_table.c.last_seq > since)
        rows = self._reads.read(lambda connection: connection.execute(query).all())
        return tuple(states.summary_of(*row) for row in rows)

    def state(self, node: NodeId) -> NodeState:
        return self._reads.read(lambda connection: states.load(connection, node))

    def incidents(self, *, unfinished: bool = False) -> tuple[IncidentState, ...]:
        return self._reads.read(lambda connection: incident_states.load_all(connection, unfinished=unfinished))

    def history(self, stream: Stream, subject: str) -> Iterator[Event]:
        mine = (events_table.c.stream == stream.value) & (events_table.c.subject == subject)
        return self._events(select(events_table).where(mine))

    def latest(self, stream: Stream, kind: Kind | None = None) -> Iterator[Event]:
        last = select(func.max(events_table.c.seq)).where(events_table.c.stream == stream.value)
        if kind is not None:
            last = last.where(events_table.c.kind == kind.value)
        last = last.group_by(events_table.c.subject, events_table.c.kind)
        return self._events(select(events_table).where(events_table.c.seq.in_(last)))

    def histories(self, nodes: Collection[NodeId], kinds: Collection[Kind]) -> Iterator[Event]:
        of_kind = events_table.c.kind.in_([kind.value for kind in kinds])
        for part in _parts(nodes):
            mine = (events_table.c.stream == Stream.NODE.value) & events_table.c.subject.in_(part)
            yield from self._events(select(events_table).where(mine & of_kind))

    def recent(self, kinds: Collection[Kind], since: datetime) -> Iterator[Event]:
        """Read each kind from its newest event back, until `_AT_ONCE` in a row are older: years of a large fleet are
        millions of events, and clocks of controllers may differ.
        """

        def late(connection: Connection) -> list[int]:
            return sorted(seq for kind in kinds for seq in _since(connection, kind, since.isoformat()))

        return self._numbered(self._reads.read(late))

    def later(self, kinds: Collection[Kind], seq: int) -> Iterator[Event]:
        new = events_table.c.kind.in_([kind.value for kind in kinds]) & (events_table.c.seq > seq)
        query = select(events_table.c.seq).where(new).order_by(events_table.c.seq)
        return self._numbered(self._reads.read(lambda connection: connection.execute(query).scalars().all()))

    def owners(self, prefix: str) -> tuple[ClaimOwner, ...]:
        return self._reads.read(lambda connection: claims.owners(connection, prefix))

    def _events(self, query: Select[Any]) -> Iterator[Event]:
        """Return the events of a query in their order; each is decoded when it is asked for."""
        ordered = query.order_by(events_table.c.seq)
        rows = self._reads.read(lambda connection: connection.execute(ordered).mappings().all())
        return (event_of(row) for row in rows)

    def _numbered(self, numbers: Sequence[int]) -> Iterator[Event]:
        """Return the events of these numbers, which are read in parts: a day of a large fleet has gigabytes."""
        parts = (self._events(select(events_table).where(events_table.c.seq.in_(part))) for part in _parts(numbers))
        return itertools.chain.from_iterable(parts)

    def rebuild(self) -> None:
        """Write every stored state again from its events."""
        self._database.write(states.rebuild)

    def health(self) -> JournalHealth:
        return self._reads.snapshot(_health)

    @property
    def lease_s(self) -> float:
        return self._holder.lease_s

    def claim(self, nodes: Iterable[NodeId], run: str) -> Claims:
        """Claim for `run`; a node may be asked for again and again, and is ours under its newest token."""
        wanted = tuple(nodes)
        holder = replace(self._holder, run=run)
        return self._database.write(lambda connection: claims.take(connection, wanted, holder))

    def renew(self, claims_: Iterable[Claim]) -> Mapping[NodeId, str]:
        held = tuple(claims_)
        return self._database.write(lambda connection: claims.renew_under(connection, held, self._holder))

    def release(self, claims_: Iterable[Claim], rest_s: float = 0.0) -> None:
        held = tuple(claims_)
        self._database.write(lambda connection: claims.release(connection, held, rest_s))

    def close(self) -> None:
        self._database.engine.dispose()
        if isinstance(self._reads, ReplicaReads):
            self._reads.replica.engine.dispose()

    def _row(self, new: NewEvent, key: str) -> dict[str, Any]:
        """Return an event as a row of its table, without `seq` and its link."""
        return {
            "stream": new.stream.value,
            "subject": new.subject,
            "kind": new.kind.value,
            "version": new.payload.version,
            "at": self._clock.now().isoformat(),
            "run": self._holder.run,
            "actor": self._holder.actor,
            "data": payload_to_json(new.payload),
            "evidence": json.dumps(list(new.evidence)),
            "idempotency_key": key,
        }


def _parts(items: Iterable[T]) -> Iterator[list[T]]:
    """Yield the items in lists that one query can take."""
    left = list(items)
    for start in range(0, len(left), _AT_ONCE):
        yield left[start : start + _AT_ONCE]


def _since(connection: Connection, kind: Kind, since: str) -> Iterator[int]:
    """Yield the numbers of the events of a kind that are not older than `since`, the newest first."""
    table = events_table.c
    query = select(table.seq, table.at).where(table.kind == kind.value).order_by(table.seq.desc()).limit(_AT_ONCE)
    rows = connection.execute(query).all()
    while any(at >= since for _, at in rows):
        yield from (seq for seq, at in rows if at >= since)
        rows = connection.execute(query.where(table.seq < rows[-1][0])).all()


def _inserted(connection: Connection, row: Mapping[str, Any]) -> Mapping[str, Any]:
    """Insert a row; return it with its `seq`."""
    inserted = connection.execute(insert(events_table).values(**row)).inserted_primary_key
    return {**row, "seq": int(inserted[0]) if inserted is not None else 0}


def _health(connection: Connection) -> JournalHealth:
    last = select(events_table.c.seq, events_table.c.at).order_by(events_table.c.seq.desc()).limit(1)
    row = connection.execute(last).first()
    return JournalHealth(
        bytes=int(connection.execute(_SIZE[connection.dialect.name]).scalar_one()),
        last_seq=row.seq if row else 0,
        last_at=datetime.fromisoformat(row.at) if row else None,
        claims=claims.count(connection),
    )
