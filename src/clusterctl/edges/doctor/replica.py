"""The check of the journal's replica: it answers, it is a standby, it has this site's journal, and how late it is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TypeVar

from sqlalchemy import Connection, create_engine, func, inspect, select
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.pool import NullPool

from clusterctl.edges.journal.tables import event
from clusterctl.edges.site import Site
from clusterctl.fleet.diagnosis import Diagnosis, broken, not_measured, ok, warn
from clusterctl.site.urls import place_of

T = TypeVar("T")

NAME = "journal_replica"
SECONDS = 4
LATE = timedelta(seconds=60)
"""An event that has been missing for longer than this: a page that shows it so late misleads its readers."""

STANDBY = "name a standby of the database in journal as journal_replica, or remove the field"


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplicaState:
    """What a replica holds.

    standby  whether it replays another server's log; False: it takes writes itself
    last     number and digest of its last event; None where it has no event or no such table
    """

    standby: bool
    last: tuple[int, str] | None


@dataclass(frozen=True, slots=True, kw_only=True)
class JournalState:
    """What the journal's database has, compared with a replica's last event.

    digest   that of the event with the number of the replica's last one; empty where there is none
    missing  events after that number
    since    the time of the first of them; None where none is missing
    """

    digest: str
    missing: int
    since: datetime | None


def check_replica(site: Site) -> Diagnosis:
    """Compare the last event of `journal_replica` with the journal's own; both are only read."""
    url = site.replica_url()
    if not url:
        return ok(NAME, "the site names none")
    where = place_of(url)
    replica = _asked(url, _replica_state)
    if isinstance(replica, str):
        remedy = "check that the standby runs, that the URL in journal_replica is right, and that this user may log in"
        return broken(NAME, f"{where} does not open: {replica}; the journal's database is read instead", remedy)
    journal = _asked(site.journal_url(), lambda connection: _journal_state(connection, replica))
    if isinstance(journal, str):
        return not_measured(NAME, f"{where} opens; the journal does not, so the two were not compared: {journal}")
    return judge_replica(where, replica, journal, datetime.now(UTC))


def _asked(url: str, question: Callable[[Connection], T]) -> T | str:
    """Return the answer of the database at `url`, or why it gave none."""
    engine = create_engine(url, connect_args={"connect_timeout": SECONDS}, poolclass=NullPool)
    try:
        with engine.connect() as connection:
            return question(connection)
    except SQLAlchemyError as error:
        return str(getattr(error, "orig", None) or type(error).__name__).strip().splitlines()[0]
    finally:
        engine.dispose()


def _replica_state(connection: Connection) -> ReplicaState:
    standby = bool(connection.execute(select(func.pg_is_in_recovery())).scalar())
    row = None
    if inspect(connection).has_table(event.name):
        row = connection.execute(select(event.c.seq, event.c.digest).order_by(event.c.seq.desc()).limit(1)).first()
    return ReplicaState(standby=standby, last=None if row is None else (row.seq, row.digest))


def _journal_state(connection: Connection, replica: ReplicaState) -> JournalState:
    if not inspect(connection).has_table(event.name):
        return JournalState(digest="", missing=0, since=None)
    seq = 0 if replica.last is None else replica.last[0]
    missing, since = connection.execute(select(func.count(), func.min(event.c.at)).where(event.c.seq > seq)).one()
    digest = connection.execute(select(event.c.digest).where(event.c.seq == seq)).scalar() or ""
    return JournalState(
        digest=digest, missing=missing, since=None if since is None else datetime.fromisoformat(since).astimezone(UTC)
    )


def judge_replica(where: str, replica: ReplicaState, journal: JournalState, now: datetime) -> Diagnosis:
    """Judge what a replica holds against the journal, which was read after it."""
    if replica.last is not None and replica.last[1] != journal.digest:
        message = f"{where} has another journal: its event {replica.last[0]} is not this site's"
        return broken(NAME, message, STANDBY)
    late = timedelta() if journal.since is None else max(now - journal.since, timedelta())
    if late > LATE:
        if replica.last is None:
            return broken(NAME, f"{where} has no journal, this site's has {journal.missing} events", STANDBY)
        message = f"{where} lacks {journal.missing} events, the oldest of them for {_duration(late)}"
        return warn(NAME, message, "check the replication: pg_stat_replication there, pg_stat_wal_receiver here")
    if not replica.standby:
        message = f"{where} is no standby: it takes writes itself, so that readers burden the journal's own database"
        return warn(NAME, message, "name the standby's server as journal_replica; after a fail-over they are exchanged")
    if replica.last is None:
        return ok(NAME, f"{where} is a standby; the journal has no event yet")
    behind = "has all events" if not journal.missing else f"lacks {journal.missing} events of the last moments"
    return ok(NAME, f"{where} is a standby, {behind}")


def _duration(late: timedelta) -> str:
    seconds = int(late.total_seconds())
    return f"{seconds} s" if seconds < 600 else f"{seconds // 60} min"
