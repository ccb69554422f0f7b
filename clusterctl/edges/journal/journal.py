"""`SqlJournal`: one writer at a time, every append and the states it changes in one transaction."""

from __future__ import annotations

import json
import sqlite3
import threading
import zlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path

from sqlalchemy import Connection, Engine, create_engine, delete, func, insert, select
from sqlalchemy import event as sql_event
from sqlalchemy.exc import SQLAlchemyError

from clusterctl.edges.journal import claims
from clusterctl.edges.journal.rows import event_of
from clusterctl.edges.journal.schema import bring_up
from clusterctl.edges.journal.tables import event as events_table
from clusterctl.edges.journal.tables import evidence as evidence_table
from clusterctl.edges.journal.tables import node_state as states_table
from clusterctl.fleet.codec import state_from_json, state_to_json, summary_from_json, summary_to_json
from clusterctl.fleet.errors import EnvironmentBrokenError
from clusterctl.fleet.event import VERSIONS, Event, NewEvent
from clusterctl.fleet.finding import Digest, Evidence, Origin
from clusterctl.fleet.history import apply, fold
from clusterctl.fleet.node import NodeId
from clusterctl.fleet.state import NodeState, Summary
from clusterctl.ports import Claim, Claims, Clock

ONE_WRITER = 0x636C7573
"""PostgreSQL's advisory lock of whoever appends, so that `seq` is the order in which events can be seen. SQLite's own
write lock does the same."""


def open_journal(url: str, clock: Clock, *, run: str = "", actor: str = "clusterctl") -> SqlJournal:
    """Open (and create or migrate) the journal at a SQLAlchemy URL; only its owner may read a SQLite file."""
    if url.startswith("sqlite:///"):
        _prepare_file(Path(url.removeprefix("sqlite:///")))
    engine = create_engine(url)
    if engine.dialect.name == "sqlite":
        sql_event.listen(engine, "connect", _tune_sqlite)
        sql_event.listen(engine, "begin", _begin_sqlite)
    shown = engine.url.render_as_string(hide_password=True)
    with _explained(shown):
        bring_up(engine, shown)
    return SqlJournal(engine, clock, run, actor)


def _prepare_file(file: Path) -> None:
    """Make sure of a database file that only its owner may read."""
    try:
        file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        with file.open("ab"):
            pass
        if file.stat().st_size == 0:
            file.chmod(0o600)
    except OSError as error:
        raise EnvironmentBrokenError(
            f"the journal cannot be written: {error.strerror}",
            where=str(file),
            remedy="run as the user who owns the site directory, or mend its owner and mode",
        ) from None


class SqlJournal:
    """Meets `ports.Journal`. Thread-safe."""

    def __init__(self, engine: Engine, clock: Clock, run: str, actor: str) -> None:
        self._engine = engine
        self._clock = clock
        self._run = run
        self._actor = actor
        self._writer = threading.Lock()
        self._owner = claims.Owner.this()
        self._where = engine.url.render_as_string(hide_password=True)

    def append(self, events: Sequence[NewEvent], *, claim: Claim | None = None) -> tuple[Event, ...]:
        with self._writing() as connection:
            if claim is not None:
                claims.check(connection, claim)
            written = tuple(self._insert(connection, new) for new in events)
            for node in dict.fromkeys(NodeId(e.subject) for e in written if e.stream == "node"):
                state = self._load(connection, node) or NodeState(node)
                for item in written:
                    if item.stream == "node" and item.subject == node:
                        state = apply(state, item)
                self._save(connection, state)
        return written

    def store(self, evidence: Iterable[Evidence]) -> None:
        items = {item.digest: item for item in evidence}
        if not items:
            return
        with self._writing() as connection:
            known = select(evidence_table.c.digest).where(evidence_table.c.digest.in_(list(items)))
            for digest in connection.execute(known).scalars():
                del items[Digest(digest)]
            for digest, item in items.items():
                values = {"source": item.source, "where": item.where, "at": item.at.isoformat()}
                content = zlib.compress(item.content, 6)
                row = insert(evidence_table).values(digest=digest, origin=item.origin.value, content=content, **values)
                connection.execute(row)

    def evidence(self, digest: Digest) -> Evidence | None:
        with self._reading() as connection:
            query = select(evidence_table).where(evidence_table.c.digest == digest)
            row = connection.execute(query).mappings().first()
        if row is None:
            return None
        at = datetime.fromisoformat(row["at"])
        return Evidence(row["source"], row["where"], at, Origin(row["origin"]), zlib.decompress(row["content"]))

    def states(self) -> tuple[NodeState, ...]:
        with self._reading() as connection:
            rows = connection.execute(select(states_table.c.state).order_by(states_table.c.name)).scalars().all()
        return tuple(state_from_json(row) for row in rows)

    def summaries(self) -> tuple[Summary, ...]:
        with self._reading() as connection:
            rows = connection.execute(select(states_table.c.summary).order_by(states_table.c.name)).scalars().all()
        return tuple(summary_from_json(row) for row in rows)

    def state(self, node: NodeId) -> NodeState:
        with self._reading() as connection:
            return self._load(connection, node) or NodeState(node)

    def history(self, stream: str, subject: str) -> Iterator[Event]:
        query = select(events_table).where(events_table.c.stream == stream, events_table.c.subject == subject)
        with self._reading() as connection:
            rows = connection.execute(query.order_by(events_table.c.seq)).mappings().all()
        return (event_of(row) for row in rows)

    def rebuild(self) -> None:
        """Write every node state anew from its events."""
        with self._writing() as connection:
            nodes = connection.execute(select(events_table.c.subject).where(events_table.c.stream == "node").distinct())
            for node in nodes.scalars().all():
                query = select(events_table).where(events_table.c.stream == "node", events_table.c.subject == node)
                rows = connection.execute(query.order_by(events_table.c.seq)).mappings().all()
                self._save(connection, fold((event_of(row) for row in rows), NodeId(node)))

    def claim(self, nodes: Iterable[NodeId], run: str) -> Claims:
        with self._writing() as connection:
            return claims.take(connection, nodes, run, self._owner)

    def renew(self, run: str) -> None:
        with self._writing() as connection:
            claims.renew(connection, run)

    def release(self, claims_: Iterable[Claim]) -> None:
        with self._writing() as connection:
            claims.release(connection, claims_)

    def close(self) -> None:
        self._engine.dispose()

    @contextmanager
    def _writing(self) -> Iterator[Connection]:
        with self._writer, _explained(self._where), self._engine.begin() as connection:
            if connection.dialect.name == "postgresql":
                connection.execute(select(func.pg_advisory_xact_lock(ONE_WRITER)))
            yield connection

    @contextmanager
    def _reading(self) -> Iterator[Connection]:
        engine = self._engine.execution_options(reading=True)
        with _explained(self._where), engine.connect() as connection:
            yield connection

    def _insert(self, connection: Connection, new: NewEvent) -> Event:
        at, version = self._clock.now(), VERSIONS[new.kind]
        row = insert(events_table).values(
            stream=new.stream,
            subject=new.subject,
            kind=new.kind.value,
            version=version,
            at=at.isoformat(),
            run=self._run,
            actor=self._actor,
            data=json.dumps(new.data, separators=(",", ":")),
            evidence=json.dumps(list(new.evidence)),
        )
        key = connection.execute(row).inserted_primary_key
        seq = int(key[0]) if key is not None else 0
        return Event(
            seq, new.stream, new.subject, new.kind, version, at, self._run, self._actor, new.data, new.evidence
        )

    def _load(self, connection: Connection, node: NodeId) -> NodeState | None:
        row = connection.execute(select(states_table.c.state).where(states_table.c.node == node)).scalar()
        return None if row is None else state_from_json(row)

    def _save(self, connection: Connection, state: NodeState) -> None:
        connection.execute(delete(states_table).where(states_table.c.node == state.id))
        values = {"name": state.name or state.id, "stage": state.stage.value, "last_seq": state.last_seq}
        texts = {"summary": summary_to_json(state), "state": state_to_json(state)}
        connection.execute(insert(states_table).values(node=state.id, **values, **texts))


@contextmanager
def _explained(where: str) -> Iterator[None]:
    """Database errors as ours, without the statement and its values."""
    try:
        yield
    except SQLAlchemyError as error:
        cause = str(getattr(error, "orig", None) or type(error).__name__).splitlines()[0]
        raise EnvironmentBrokenError(
            f"the journal's database failed: {cause}",
            where=where,
            remedy="check that the database runs, is writable and has free disk; nothing half-done was recorded",
        ) from None


def _tune_sqlite(connection: sqlite3.Connection, _record: object) -> None:
    connection.isolation_level = None
    connection.execute("PRAGMA journal_mode=WAL")
    connection.execute("PRAGMA synchronous=FULL")
    connection.execute("PRAGMA busy_timeout=10000")


def _begin_sqlite(connection: Connection) -> None:
    """Writers take the lock at once, so that what they read is what they change; readers never wait."""
    reading = connection.get_execution_options().get("reading", False)
    connection.exec_driver_sql("BEGIN" if reading else "BEGIN IMMEDIATE")
