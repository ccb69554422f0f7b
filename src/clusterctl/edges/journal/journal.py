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
from clusterctl.edges.journal.gathering import Gathered
from clusterctl.edges.journal.integrity import chained, event_of, packed, removed, unpacked
from clusterctl.edges.journal.replica import Reads, ReplicaReads
from clusterctl.edges.journal.states import parts
from clusterctl.edges.journal.tables import event as events_table
from clusterctl.edges.journal.tables import evidence as evidence_table
from clusterctl.edges.journal.tables import node_state as states_table
from clusterctl.fleet.codec import payload_to_json
from clusterctl.fleet.errors import ClaimLostError, ConflictError, EnvironmentBrokenError
from clusterctl.fleet.event import Event, Kind, NewEvent, Stream
from clusterctl.fleet.finding import Digest, Evidence
from clusterctl.fleet.incidents.incident import IncidentState
from clusterctl.fleet.node import NodeId
from clusterctl.fleet.state import NodeState, NodeSummary
from clusterctl.ports.deadline import Clock
from clusterctl.ports.journal import Append, Claim, ClaimOwner, Claims, JournalHealth

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
"""Rows of one look back."""
_TOGETHER = 100
"""Appends of one transaction: other controllers wait for it."""
_Keyed = tuple[Append, tuple[str, ...]]
"""An append, and the idempotency key of each of its events."""


class SqlJournal:
    """Meets `ports.Journal`. Thread-safe."""

    def __init__(self, database: Database, clock: Clock, holder: Holder, reads: Reads | None = None) -> None:
        self._database = database
        self._reads = reads or database
        self._clock = clock
        self._holder = holder
        self._key = uuid.uuid4().hex
        self._numbers = itertools.count()
        self._appending = Gathered(self._append, _TOGETHER)
        self._storing = Gathered(self._store, _TOGETHER)

    def append(self, events: Sequence[NewEvent], *, claim: Claim | None = None) -> tuple[Event, ...]:
        (written,) = self.append_each([Append(events, claim)])
        if isinstance(written, Exception):
            raise written
        return written

    def append_each(self, appends: Sequence[Append]) -> Sequence[tuple[Event, ...] | Exception]:
        results = self._appending.each([(one, self._keys(one)) for one in appends])
        for result in results:
            if isinstance(result, EnvironmentBrokenError):
                raise result
        return results

    def _keys(self, one: Append) -> tuple[str, ...]:
        return tuple(f"{self._key}-{next(self._numbers)}" for _ in one.events)

    def _append(self, asked: Sequence[_Keyed]) -> Sequence[tuple[Event, ...] | Exception]:
        """Write what several threads append in one transaction."""
        return self._database.write(
            lambda connection: self._written(connection, asked),
            recover=lambda connection: self._written_before(connection, asked),
        )

    def _written(self, connection: Connection, asked: Sequence[_Keyed]) -> Sequence[tuple[Event, ...] | Exception]:
        """Write those whose claims are ours; return the errors of the others."""
        lost = self._lost(connection, asked)
        kept = [one for one, error in zip(asked, lost, strict=True) if error is None]
        new = [self._row(event, key) for append, keys in kept for event, key in zip(append.events, keys, strict=True)]
        written = tuple(map(event_of, _inserted(connection, chained(connection, new))))
        states.move(connection, written)
        left = iter(written)
        return [error or tuple(itertools.islice(left, len(keys))) for (_, keys), error in zip(asked, lost, strict=True)]

    def _written_before(
        self, connection: Connection, asked: Sequence[_Keyed]
    ) -> Sequence[tuple[Event, ...] | Exception] | None:
        """Return what the lost transaction wrote of them, all or nothing; those that it refused are refused still."""
        column = events_table.c.idempotency_key
        written: dict[str, Event] = {}
        for part in parts(key for _, keys in asked for key in keys):
            rows = connection.execute(select(events_table).where(column.in_(part))).mappings()
            written |= {row["idempotency_key"]: event_of(row) for row in rows}
        if not written:
            return None
        refused = ConflictError("it was not written", where=self._database.where, remedy="run the command again")
        return [
            tuple(written[key] for key in keys) if written.keys() >= set(keys) else error or refused
            for (_, keys), error in zip(asked, self._lost(connection, asked), strict=True)
        ]

    def _lost(self, connection: Connection, asked: Sequence[_Keyed]) -> list[ClaimLostError | None]:
        """Return, for each, why a claim that it needs is lost."""
        under = self._holder.under
        needed = [[claim for claim in (under, append.claim) if claim is not None] for append, _ in asked]
        lost = claims.lost(connection, itertools.chain.from_iterable(needed))
        return [next((lost[claim] for claim in mine if claim in lost), None) for mine in needed]

    def store(self, evidence: Iterable[Evidence]) -> None:
        items = {item.digest: item for item in evidence}
        if items:
            (error,) = self._storing.each([items])
            if isinstance(error, Exception):
                raise error

    def _store(self, asked: Sequence[Mapping[Digest, Evidence]]) -> Sequence[None]:
        """Store what several threads store in one transaction; other writers do not wait while it is compressed."""
        items = {digest: item for one in asked for digest, item in one.items()}
        known = self._database.read(lambda connection: _known(connection, items))
        rows = [{"digest": digest, **packed(item)} for digest, item in items.items() if digest not in known]

        def write(connection: Connection) -> None:
            stored = _known(connection, (digest for digest in items if digest not in known))
            if new := [row for row in rows if row["digest"] not in stored]:
                connection.execute(insert(evidence_table), new)

        if rows:
            self._database.write(write)
        return [None] * len(asked)

    def evidence(self, digest: Digest) -> Evidence | None:
        query = select(evidence_table).where(evidence_table.c.digest == digest)
        row = self._reads.read(lambda connection: connection.execute(query).mappings().first())
        return None if row is None or removed(row) else unpacked(row)

    def evidences(self, digests: Iterable[Digest]) -> Mapping[Digest, Evidence]:
        wanted = dict.fromkeys(digests)
        found: dict[Digest, Evidence] = {}
        for part in parts(wanted):
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
        for part in parts(name for name, node in self.names().items() if node not in without):
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
            known = dict(connection.execute(digests).all())
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
        return self.states_of([node])[node]

    def states_of(self, nodes: Iterable[NodeId]) -> Mapping[NodeId, NodeState]:
        asked = tuple(nodes)
        return self._reads.read(lambda connection: states.load(connection, asked))

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
        for part in parts(nodes):
            mine = (events_table.c.stream == Stream.NODE.value) & events_table.c.subject.in_(part)
            yield from self._events(select(events_table).where(mine & of_kind))

    def recent(
        self, kinds: Collection[Kind], since: datetime, subjects: Collection[str] | None = None
    ) -> Iterator[Event]:
        """Read each kind from its newest event back, until `_AT_ONCE` in a row are older: years of a large fleet are
        millions of events, and clocks of controllers may differ.
        """

        def late(connection: Connection) -> list[int]:
            found = (row for kind in kinds for row in _since(connection, kind, since.isoformat()))
            return sorted(seq for seq, subject in found if subjects is None or subject in subjects)

        return self._numbered(self._reads.read(late))

    def later(self, kinds: Collection[Kind], seq: int) -> Iterator[Event]:
        new = events_table.c.kind.in_([kind.value for kind in kinds]) & (events_table.c.seq > seq)
        query = select(events_table.c.seq).where(new).order_by(events_table.c.seq)
        return self._numbered(self._reads.read(lambda connection: connection.execute(query).scalars().all()))

    def changed(self, kinds: Collection[Kind], seq: int) -> Collection[NodeId]:
        table = events_table.c
        mine = (table.stream == Stream.NODE.value) & table.kind.in_([kind.value for kind in kinds]) & (table.seq > seq)
        query = select(table.subject).where(mine).distinct()
        return [NodeId(node) for node in self._reads.read(lambda connection: connection.execute(query).scalars().all())]

    def last_seq(self) -> int:
        query = select(func.coalesce(func.max(events_table.c.seq), 0))
        return int(self._reads.read(lambda connection: connection.execute(query).scalar_one()))

    def owners(self, prefix: str) -> tuple[ClaimOwner, ...]:
        return self._reads.read(lambda connection: claims.owners(connection, prefix))

    def _events(self, query: Select[Any]) -> Iterator[Event]:
        """Return the events of a query in their order; each is decoded when it is asked for."""
        ordered = query.order_by(events_table.c.seq)
        rows = self._reads.read(lambda connection: connection.execute(ordered).mappings().all())
        return (event_of(row) for row in rows)

    def _numbered(self, numbers: Sequence[int]) -> Iterator[Event]:
        """Return the events of these numbers, which are read in parts: a day of a large fleet has gigabytes."""
        queries = (select(events_table).where(events_table.c.seq.in_(part)) for part in parts(numbers))
        return itertools.chain.from_iterable(map(self._events, queries))

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


def _known(connection: Connection, digests: Iterable[Digest]) -> set[Digest]:
    """Return those of the digests whose evidence is stored."""
    known: set[Digest] = set()
    for part in parts(digests):
        query = select(evidence_table.c.digest).where(evidence_table.c.digest.in_(part))
        known.update(map(Digest, connection.execute(query).scalars()))
    return known


def _since(connection: Connection, kind: Kind, since: str) -> Iterator[tuple[int, str]]:
    """Yield number and subject of the events of a kind that are not older than `since`, the newest first."""
    table = events_table.c
    columns = (table.seq, table.subject, table.at)
    query = select(*columns).where(table.kind == kind.value).order_by(table.seq.desc()).limit(_AT_ONCE)
    rows = connection.execute(query).all()
    while any(at >= since for _, _, at in rows):
        yield from ((seq, subject) for seq, subject, at in rows if at >= since)
        rows = connection.execute(query.where(table.seq < rows[-1][0])).all()


def _inserted(connection: Connection, rows: Sequence[Mapping[str, Any]]) -> Iterator[Mapping[str, Any]]:
    """Insert rows; return them with their `seq`, which grows in their order."""
    if not rows:
        return iter(())
    statement = insert(events_table).returning(events_table.c.seq, sort_by_parameter_order=True)
    numbers = connection.execute(statement, rows).scalars().all()
    return ({**row, "seq": seq} for row, seq in zip(rows, numbers, strict=True))


def _health(connection: Connection) -> JournalHealth:
    last = select(events_table.c.seq, events_table.c.at).order_by(events_table.c.seq.desc()).limit(1)
    row = connection.execute(last).first()
    return JournalHealth(
        bytes=int(connection.execute(_SIZE[connection.dialect.name]).scalar_one()),
        last_seq=row.seq if row else 0,
        last_at=datetime.fromisoformat(row.at) if row else None,
        claims=claims.count(connection),
    )
