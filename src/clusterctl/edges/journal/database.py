"""The SQL database under the journal: one writer at a time, transactions tried again where that is safe."""

from __future__ import annotations

import errno
import itertools
import os
import re
import sqlite3
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import stamina
from sqlalchemy import Connection, Engine, create_engine, func, inspect, make_url, select, table
from sqlalchemy import column as sql_column
from sqlalchemy import event as sql_event
from sqlalchemy.engine.interfaces import DBAPIConnection
from sqlalchemy.exc import DataError, DBAPIError, IntegrityError, OperationalError, SQLAlchemyError
from sqlalchemy.exc import TimeoutError as PoolTimeoutError

from clusterctl.edges.journal import claims
from clusterctl.edges.journal.integrity import JournalDamagedError
from clusterctl.edges.journal.states import rebuild
from clusterctl.edges.journal.tables import SCHEMA_VERSION
from clusterctl.fleet.errors import ConflictError, EnvironmentBrokenError, JournalUnavailableError, UsageError

T = TypeVar("T")

ONE_WRITER = 0x636C7573
"""PostgreSQL's advisory lock of the writer, so that `seq` is the order in which events can be seen. SQLite's own
write lock does the same."""
NAMED_CLAIMS = "0002"
"""The first version whose claims name the processes that have them."""
RECONNECT_S = 60.0
"""So long a transaction is tried again while the server is away. A restart takes seconds; a standby of Patroni leads
after its `ttl` (30 s), its `loop_wait` (10 s) and its promotion at the latest."""
LOCK_S = 30
"""So long a writer waits for another."""
STOPPED_S = 10
"""A writer that is silent for so long in its transaction (a stopped process) loses it, and the others go on."""
FULL = ("53100", "database or disk is full")
LOCKED = ("55P03", "database is locked")
MALFORMED = ("database disk image is malformed", "file is not a database", "XX001", "XX002", "disk I/O error")
"""What SQLite and PostgreSQL report of damaged pages."""
AWAY = ("57P01", "57P02", "57P03", "57P05", "08", "25P03", "53", "40")
"""SQLSTATEs, or their classes, of a server that ended the connection, starts, stops or lacks a connection, memory or
disk for the moment, or that rolled the transaction back for another one (PostgreSQL, appendix A).
"""
REFUSED = ("28", "3D", "42")
"""SQLSTATE classes of a login or database that is wrong: waiting changes nothing."""
SILENCE = {
    "connect_timeout": 10,
    "keepalives_idle": 10,
    "keepalives_interval": 5,
    "keepalives_count": 3,
    "tcp_user_timeout": 30_000,
}
"""Options of libpq: a server that became silent, as behind a dead switch, is given up after half a minute. By default
Linux waits for a quarter of an hour for an acknowledgement, and for ever for an answer. The URL may set others.
"""
SNAPSHOT = {"postgresql": {"isolation_level": "REPEATABLE READ"}}
"""Engine → what lets several statements see one moment. A transaction of SQLite always does."""


class Database:
    """Transactions on one engine. Thread-safe. Meant for short work that may run twice."""

    def __init__(self, engine: Engine, reconnect_s: float = RECONNECT_S) -> None:
        self.engine = engine
        self.where = engine.url.render_as_string(hide_password=True)
        self._writer = threading.Lock()
        self._reconnect_s = reconnect_s
        self._left_s = reconnect_s

    def write(self, work: Callable[[Connection], T], recover: Callable[[Connection], T | None] | None = None) -> T:
        """Run `work` in a transaction, alone among writers.

        Where the server went away it runs again in a new one. The lost one may have been committed although its
        acknowledgement never came: `recover`, asked first then, returns what that transaction wrote, or None. It
        cannot be committed any later: the writers' lock that the new transaction holds was its own until its end.
        """
        attempts = itertools.count()

        def once() -> T:
            again = next(attempts) > 0
            with self._alone() as connection:
                found = recover(connection) if recover is not None and again else None
                return work(connection) if found is None else found

        with self._writer, self._patiently():
            return self._retrying(once)

    def read(self, work: Callable[[Connection], T]) -> T:
        """Run `work`, which only reads; it never waits for writers."""
        return self._reading(work, {"reading": True})

    def snapshot(self, work: Callable[[Connection], T]) -> T:
        """Run `work`, which reads in several statements: all see the database at one moment."""
        return self._reading(work, {"reading": True, **SNAPSHOT.get(self.engine.dialect.name, {})})

    def _reading(self, work: Callable[[Connection], T], options: Mapping[str, Any]) -> T:
        engine = self.engine.execution_options(**options)

        def once() -> T:
            with engine.connect() as connection:
                return work(connection)

        with self._patiently():
            return self._retrying(once)

    @contextmanager
    def _alone(self) -> Iterator[Connection]:
        with self.engine.begin() as connection:
            lock_writers_out(connection)
            yield connection

    @contextmanager
    def _patiently(self) -> Iterator[None]:
        """Wait for the server; after a wait without success, do not wait as long again until it has answered."""
        try:
            with explained(self.where):
                yield
        except EnvironmentBrokenError:
            self._left_s = 0.0
            raise
        self._left_s = self._reconnect_s

    def _retrying(self, once: Callable[[], T]) -> T:
        """Repeat while a server restarts; a file's errors are final."""
        if self.engine.dialect.name == "sqlite" or self._left_s <= 0:
            return once()
        patient = stamina.RetryingCaller(None, self._left_s, wait_initial=0.1, wait_max=2, wait_jitter=0.2)
        return patient.on(_is_away)(once)


def connect(url: str, reconnect_s: float = RECONNECT_S) -> Database:
    """Return a database at a SQLAlchemy URL; nothing is sent yet. Only its owner may read a SQLite file."""
    if url.startswith("sqlite:///"):
        _prepare_file(Path(url.removeprefix("sqlite:///")))
    given = make_url(url)
    silence = (
        {} if given.drivername.startswith("sqlite") else {k: v for k, v in SILENCE.items() if k not in given.query}
    )
    engine = create_engine(given, connect_args=silence)
    if engine.dialect.name == "sqlite":
        sql_event.listen(engine, "connect", _tune_sqlite)
        sql_event.listen(engine, "begin", _begin_sqlite)
    else:
        sql_event.listen(engine, "connect", _tune_postgresql)
        # Several rows are one statement, never psycopg's pipeline: after a `Flush` there PostgreSQL waits for the next
        # message without its idle timeout (postgres.c), and a writer that is stopped would keep the lock for ever.
        engine.dialect.use_insertmanyvalues_wo_returning = True
    return Database(engine, reconnect_s)


def lock_writers_out(connection: Connection) -> None:
    """Lock other writers out until the end of the transaction. SQLite took its lock at `BEGIN`."""
    if connection.dialect.name == "postgresql":
        connection.execute(select(func.pg_advisory_xact_lock(ONE_WRITER)))


@contextmanager
def explained(where: str) -> Iterator[None]:
    """Turn database errors into ours, without the statement and its values."""
    try:
        yield
    except IntegrityError:
        raise ConflictError(
            "another clusterctl wrote the same thing a moment before", where=where, remedy="run the command again"
        ) from None
    except SQLAlchemyError as error:
        cause = _cause(error)
        if any(sign in cause for sign in LOCKED):
            raise JournalUnavailableError(
                f"other clusterctl processes have been writing to the journal for {LOCK_S} seconds",
                where=where,
                remedy="look for one that was stopped (state T in ps) and continue or end it; else the machines of the "
                "journal or of its workers are too busy",
            ) from None
        if any(sign in cause for sign in FULL):
            raise JournalUnavailableError(
                "the disk that holds the journal is full; nothing half-done was recorded, nothing was done unrecorded: "
                f"{cause}",
                where=where,
                remedy="make room on that disk, then run the same command again: it goes on from here",
            ) from None
        if any(sign in cause for sign in MALFORMED):
            raise EnvironmentBrokenError(
                f"the journal's database failed: it is damaged: {cause}",
                where=where,
                remedy="check the disk under it, then run clusterctl journal restore with the last backup",
            ) from None
        if isinstance(error, DataError):
            raise EnvironmentBrokenError(
                f"the journal's database refuses a value: {cause}",
                where=where,
                remedy="report this with the run's log; nothing half-done was recorded",
            ) from None
        raise JournalUnavailableError(
            f"the journal's database failed: {cause}",
            where=where,
            remedy="check that the database runs, is writable and has free disk; nothing half-done was recorded",
        ) from None


def _cause(error: SQLAlchemyError) -> str:
    """Return the driver's first line; with PostgreSQL's code, which unlike its text is the same in every language."""
    origin = getattr(error, "orig", None)
    code = getattr(origin, "sqlstate", None)
    line = str(origin or type(error).__name__).splitlines()[0]
    return f"{line} ({code})" if code else line


def _is_away(error: Exception) -> bool:
    """Return True where the server went away in the middle, or accepts no connection (yet)."""
    if isinstance(error, PoolTimeoutError):  # all of our connections wait for it
        return True
    if not isinstance(error, DBAPIError):
        return False
    code = getattr(error.orig, "sqlstate", None) or ""
    if code.startswith(REFUSED):
        return False
    unconnected = isinstance(error, OperationalError) and error.statement is None
    return error.connection_invalidated or unconnected or code.startswith(AWAY)


def _prepare_file(file: Path) -> None:
    """Make sure of a database file that only its owner may read.

    One that exists is not opened: closing it would take away the locks that this process's other connections to it
    hold (https://www.sqlite.org/howtocorrupt.html, section 2.2).
    """
    try:
        file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        if not file.exists():
            file.touch(mode=0o600)
        elif file.is_dir():
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
        elif not os.access(file, os.R_OK | os.W_OK):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
        if file.stat().st_size == 0:
            file.chmod(0o600)
    except OSError as error:
        raise EnvironmentBrokenError(
            f"the journal cannot be written: {error.strerror}",
            where=str(file),
            remedy="run as the owner of the site directory, or correct its owner and mode",
        ) from None


def _tune_sqlite(connection: sqlite3.Connection, _record: object) -> None:
    connection.isolation_level = None
    connection.execute("PRAGMA journal_mode=WAL")
    connection.execute("PRAGMA synchronous=FULL")
    connection.execute(f"PRAGMA busy_timeout={LOCK_S * 1000}")


def _begin_sqlite(connection: Connection) -> None:
    """Begin a transaction. Writers take the lock at once, so that they change what they read; readers never wait."""
    reading = connection.get_execution_options().get("reading", False)
    connection.exec_driver_sql("BEGIN" if reading else "BEGIN IMMEDIATE")


def _tune_postgresql(connection: DBAPIConnection, _record: object) -> None:
    cursor = connection.cursor()
    cursor.execute(f"SET lock_timeout = '{LOCK_S}s'")
    cursor.execute(f"SET idle_in_transaction_session_timeout = '{STOPPED_S}s'")
    # Parallel workers need segments in the server's /dev/shm, which has 64 MiB in a container, and gain us nothing.
    cursor.execute("SET max_parallel_workers_per_gather = 0")
    connection.commit()


_REVISION = re.compile(r"(?!0000)[0-9]{4}")
_VERSION = table("alembic_version", sql_column("version_num"))


def bring_up(database: Database, *, waits: bool = False) -> None:
    """Create or migrate the tables; nothing happens, and Alembic is not even loaded, when they are current.

    `waits`: for a server that is away. Without it a wrong address is reported at once. Raise `UsageError` where the
    tables are a newer program's, and where programs work with them as they are: those would fail at their next event.
    """
    with explained(database.where):
        if waits:
            found = database.read(_found)
        else:
            with database.engine.execution_options(reading=True).connect() as connection:
                found = _found(connection)
        if found == SCHEMA_VERSION:
            return
        if found is not None and found > SCHEMA_VERSION:
            raise UsageError(
                f"the journal has version {found}, this clusterctl knows {SCHEMA_VERSION}",
                where=database.where,
                remedy="use the newer clusterctl that wrote it",
            )
        with database.engine.begin() as connection:
            lock_writers_out(connection)
            if running := users_of(connection, found):
                raise UsageError(
                    f"the journal has version {found}, with which {', '.join(running)} works; this clusterctl needs "
                    f"{SCHEMA_VERSION}",
                    where=database.where,
                    remedy="stop those (a worker gives its run back), then run this again: it migrates the journal",
                )
            _migrate(connection)
            rebuild(connection)


def users_of(connection: Connection, version: str | None) -> tuple[str, ...]:
    """Return the programs that work with a journal of this version; claims of the first one do not name them."""
    return claims.programs(connection) if version is not None and version >= NAMED_CLAIMS else ()


def _found(connection: Connection) -> str | None:
    if not inspect(connection).has_table("alembic_version"):
        return None
    rows = connection.execute(select(_VERSION.c.version_num)).scalars().all()
    found = rows[0] if len(rows) == 1 else None
    if not isinstance(found, str) or not _REVISION.fullmatch(found):
        remedy = "check the disk under it, then run clusterctl journal restore with the last backup"
        where = connection.engine.url.render_as_string(hide_password=True)
        raise JournalDamagedError(
            "the journal's version is damaged (table alembic_version)", where=where, remedy=remedy
        )
    return found


def _migrate(connection: Connection) -> None:
    """Migrate within the caller's transaction: an interrupted migration leaves the old version as it was."""
    from alembic import command  # noqa: PLC0415 — 150 ms that only a migration needs to pay
    from alembic.config import Config  # noqa: PLC0415 — likewise

    config = Config()
    config.set_main_option("script_location", str(Path(__file__).parent / "migrations"))
    config.attributes["connection"] = connection
    command.upgrade(config, "head")
