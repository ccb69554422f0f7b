"""Reads the whole journal and reports each damaged or missing row."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import TypeVar

from sqlalchemy import Connection, Table, select

from clusterctl.edges.journal import incident_states, states
from clusterctl.edges.journal.database import Database, bring_up, connect
from clusterctl.edges.journal.integrity import COMPACT, RESTORE, Row, event_of, heads, removed, unpacked
from clusterctl.edges.journal.named_evidence import names
from clusterctl.edges.journal.tables import event, evidence, incident_state, node_state
from clusterctl.fleet.errors import ClusterctlError
from clusterctl.fleet.event import Event, Stream
from clusterctl.fleet.fold import apply
from clusterctl.fleet.incidents import fold as incident_fold
from clusterctl.fleet.incidents.incident import IncidentState
from clusterctl.fleet.node import NodeId
from clusterctl.fleet.payloads.runs import EvidenceRemoved
from clusterctl.fleet.state import NodeState, summarise

T = TypeVar("T")

BATCH = 500
"""Rows that are read at once."""


@dataclass(frozen=True, slots=True)
class Damage:
    """One thing that is not what was written: where, what is wrong, and what to do."""

    where: str
    cause: str
    remedy: str = RESTORE

    def __str__(self) -> str:
        return f"{self.where}: {self.cause} — {self.remedy}"


@dataclass(frozen=True, slots=True)
class Verification:
    """What was read, and what of it is damaged. `heads`: stream → digest of its last event."""

    events: int
    evidence: int
    nodes: int
    heads: Mapping[str, str]
    last: str
    damages: tuple[Damage, ...]


@dataclass
class _Reading:
    """One pass over the journal: what it has met so far."""

    connection: Connection
    damages: list[Damage] = field(default_factory=list)
    links: dict[str, str] = field(default_factory=dict)
    states: dict[str, NodeState] = field(default_factory=dict)
    incidents: dict[str, IncidentState] = field(default_factory=dict)
    named: dict[str, str] = field(default_factory=dict)
    needed: set[str] = field(default_factory=set)
    removed_before: str = ""
    events: int = 0
    last: str = ""

    def run(self) -> Verification:
        self.pages()
        for row in rows_of(self.connection, event, "seq"):
            self.event(row)
        self.ends()
        kept = self.evidence()
        self.compare_states()
        self.compare_incidents()
        ends = {_text(stream): _text(digest) for stream, digest in sorted(self.links.items(), key=repr)}
        return Verification(self.events, kept, len(self.states), ends, self.last, tuple(self.damages))

    def pages(self) -> None:
        """Let SQLite look at its own pages and indexes."""
        if self.connection.dialect.name == "sqlite":
            for line in self.connection.exec_driver_sql("PRAGMA integrity_check").scalars():
                if line != "ok":
                    self.damages.append(Damage("the database file", str(line)))

    def event(self, row: Row) -> None:
        self.events += 1
        where = f"event {row['seq']}"
        if row["previous"] != self.links.get(row["stream"], ""):
            cause = f"an event before it in the stream {row['stream']} is missing or was altered"
            self.damages.append(Damage(where, cause))
        self.links[row["stream"]] = row["digest"]
        self.last = str(row["at"])
        read = self.guarded(partial(event_of, row))
        if read is None:
            return
        for digest in read.evidence:
            self.named.setdefault(digest, where)
        self.needed |= names(row)[1]
        if isinstance(read.payload, EvidenceRemoved):
            self.removed_before = max(self.removed_before, read.payload.before.isoformat())
        if read.stream is Stream.NODE:
            self.fold(read)
        elif read.stream is Stream.INCIDENT:
            known = self.incidents.get(read.subject) or IncidentState(read.subject)
            self.incidents[read.subject] = incident_fold.apply(known, read)

    def fold(self, one: Event) -> None:
        state = self.states.get(one.subject) or NodeState(NodeId(one.subject))
        self.states[one.subject] = self.guarded(partial(apply, state, one), f"event {one.seq}") or state

    def ends(self) -> None:
        """Compare the ends of the chains with those that are stored for them."""
        known = heads(self.connection)
        for stream in sorted({*known, *self.links}, key=repr):  # a damaged row may name anything
            if known.get(stream) != self.links.get(stream):
                self.damages.append(Damage(f"stream {stream}", "its last events are missing"))

    def evidence(self) -> int:
        found = 0
        for row in rows_of(self.connection, evidence, "digest"):
            found += 1
            self.output(row)
            self.named.pop(row["digest"], None)
        for digest, where in self.named.items():
            self.damages.append(Damage(where, f"its evidence {digest} is missing"))
        return found

    def output(self, row: Row) -> None:
        """Compare a piece of evidence with its digest; an output that retention removed must be old and passing."""
        if not removed(row):
            self.guarded(partial(unpacked, row))
        elif str(row["at"]) >= self.removed_before or row["digest"] in self.needed:
            self.damages.append(Damage(f"evidence {row['digest']}", "its raw output is missing"))

    def compare_states(self) -> None:
        missing = dict(self.states)
        for row in rows_of(self.connection, node_state, "node"):
            expected = missing.pop(row["node"], None)
            state = self.guarded(partial(states.state_of, row))
            summary = self.guarded(partial(states.summary_of, row["node"], row["summary"], row["summary_digest"]))
            if state is None or summary is None:
                continue
            if state != expected or summary != summarise(state):
                cause = "the stored state is not what its events amount to"
                self.damages.append(Damage(f"node {row['node']}", cause, COMPACT))
        for node in missing:
            self.damages.append(Damage(f"node {node}", "its stored state is missing", COMPACT))

    def compare_incidents(self) -> None:
        missing = dict(self.incidents)
        for row in rows_of(self.connection, incident_state, "incident"):
            expected = missing.pop(row["incident"], None)
            state = self.guarded(partial(incident_states.state_of, row))
            if state is not None and state != expected:
                cause = "the stored state is not what its events amount to"
                self.damages.append(Damage(f"incident {row['incident']}", cause, COMPACT))
        for incident in missing:
            self.damages.append(Damage(f"incident {incident}", "its stored state is missing", COMPACT))

    def guarded(self, read: Callable[[], T], where: str = "") -> T | None:
        """Return what `read` returns; None, and its error among the damages, where it raises one."""
        try:
            return read()
        except ClusterctlError as error:
            self.damages.append(Damage(where or error.where, error.message, error.remedy or RESTORE))
            return None


def _text(value: object) -> str:
    """Return what a column of text holds; a damaged one may hold anything."""
    return value if isinstance(value, str) else repr(value)


def verify(url: str) -> Verification:
    """Read all of the journal at `url` as of one moment. Raise `EnvironmentBrokenError` where the database gives no
    answer, or where its pages are too damaged to be read.
    """
    database = connect(url)
    try:
        bring_up(database)
        return verify_database(database)
    finally:
        database.engine.dispose()


def verify_database(database: Database) -> Verification:
    """Read all of an open journal."""
    return database.snapshot(lambda connection: _Reading(connection).run())


def rows_of(connection: Connection, table: Table, key: str) -> Iterator[Row]:
    """Yield all rows of a table in the order of its key, some at a time: a journal may be larger than memory."""
    column, last = table.c[key], None
    while True:
        query = select(table).order_by(column).limit(BATCH)
        rows = connection.execute(query if last is None else query.where(column > last)).mappings().all()
        if not rows:
            return
        yield from rows
        last = rows[-1][key]
