"""A journal of any released version is brought to today's; an interrupted migration leaves the old one as it was."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import psycopg
import pytest
from sqlalchemy import create_engine, inspect, text

from clusterctl.edges.doctor.site_checks import probe_journal
from clusterctl.edges.journal import Holder, open_journal
from clusterctl.edges.journal.database import NAMED_CLAIMS
from clusterctl.edges.journal.tables import SCHEMA_VERSION, metadata
from clusterctl.fleet.diagnosis import Health
from clusterctl.fleet.errors import EnvironmentBrokenError, UsageError
from clusterctl.fleet.event import Stream
from clusterctl.fleet.fold import fold
from clusterctl.fleet.node import NodeId, Stage
from tests.edges.journal.freeze import DATA
from tests.edges.journal.life import EVIDENCE, N1, StepClock, added
from tests.paths import ROOT

RELEASED = sorted({file.name.split(".")[0].removeprefix("journal-") for file in DATA.glob("journal-*.sql")})
MIGRATIONS = Path(open_journal.__code__.co_filename).parent / "migrations/versions"


@pytest.fixture(params=RELEASED)
def version(request: pytest.FixtureRequest, url: str) -> str:
    """The database at `url` is a journal of this version, as that version's program left it."""
    engine = "sqlite" if url.startswith("sqlite") else "postgresql"
    script = (DATA / f"journal-{request.param}.{engine}.sql").read_text(encoding="utf-8")
    if engine == "sqlite":
        with closing(sqlite3.connect(url.removeprefix("sqlite:///"))) as connection:
            connection.executescript(script)
    else:
        with psycopg.connect(url.replace("+psycopg", "")) as connection:
            connection.execute(script)
    return str(request.param)


def columns(url: str) -> dict[str, set[str]]:
    """Table → its columns."""
    engine = create_engine(url)
    tables = inspect(engine)
    found = {name: {column["name"] for column in tables.get_columns(name)} for name in tables.get_table_names()}
    engine.dispose()
    return found


def rows(url: str, query: str) -> list[tuple[object, ...]]:
    engine = create_engine(url)
    with engine.connect() as connection:
        found = [tuple(row) for row in connection.execute(text(query))]
    engine.dispose()
    return found


def test_every_version_is_frozen() -> None:
    """Each version's database but the newest lies next to this test, from both engines: none is forgotten."""
    versions = sorted(file.name[1:5] for file in MIGRATIONS.glob("r*.py"))
    assert versions[-1] == SCHEMA_VERSION
    for engine in ("sqlite", "postgresql"):
        frozen = sorted(file.name[8:12] for file in DATA.glob(f"journal-*.{engine}.sql"))
        assert set(versions[:-1]) <= set(frozen)


def test_it_is_brought_up_and_nothing_is_lost(version: str, url: str) -> None:
    """Every event and piece of evidence of the old version is read; each stored state is the fold of its events."""
    before = rows(url, "SELECT seq, stream, subject, kind, at, run, actor, data, evidence FROM event ORDER BY seq")
    book = open_journal(url, StepClock(), Holder("r2"))
    after = rows(url, "SELECT seq, stream, subject, kind, at, run, actor, data, evidence FROM event ORDER BY seq")
    assert after == before
    assert before
    states = book.states()
    assert [state.stage for state in states] == [Stage.GOLD, Stage.QUARANTINED, Stage.SEEN]
    assert list(states) == [fold(book.history(Stream.NODE, NodeId(node)), NodeId(node)) for node in ("n1", "n2", "n3")]
    assert [summary.name for summary in book.summaries()] == [state.name for state in states]
    assert book.evidence(EVIDENCE.digest) == EVIDENCE
    (written,) = book.append([added()])
    assert written.seq > max(int(str(row[0])) for row in before)
    book.close()


def test_claims_of_before_hold_until_they_expire(version: str, url: str) -> None:
    """A claim that an older program left unreleased has expired by time; tokens go on growing."""
    newest = max(int(str(row[0])) for row in rows(url, "SELECT token FROM claim"))
    book = open_journal(url, StepClock(), Holder("r2"))
    granted = book.claim([N1, NodeId("n2")], "r2").granted
    assert {claim.token > newest for claim in granted.values()} == {True}
    book.close()
    live = "UPDATE claim SET run = 'old', expires_at = 4000000000, boot = '', machine = '' WHERE node = 'n2'"
    _execute(url, live)
    again = open_journal(url, StepClock(), Holder("r3"))
    assert "held by" in again.claim([NodeId("n2")], "r3").refused[NodeId("n2")]
    again.close()


def test_it_is_not_migrated_under_a_running_worker(version: str, url: str) -> None:
    """A worker of the older program would fail at its next event. The newer program names it, by `doctor` before any
    command and by each command that is refused, and changes nothing; once the worker has stopped, it migrates.
    """
    if version < NAMED_CLAIMS:
        pytest.skip("claims of this version do not name their process")
    worker = "run = 'worker-1', host = 'host-a', pid = 7, expires_at = 4000000000, boot = '', machine = ''"
    _execute(url, f"UPDATE claim SET node = 'worker w1', {worker} WHERE node = 'n2'")
    before = columns(url)
    found = probe_journal(url, {})
    assert found.health is Health.WARN
    assert "worker w1 (pid 7 on host-a) works with it" in found.found
    with pytest.raises(UsageError, match=r"with which worker w1 \(pid 7 on host-a\) works"):
        open_journal(url, StepClock())
    assert columns(url) == before
    assert rows(url, "SELECT version_num FROM alembic_version") == [(version,)]
    _execute(url, "UPDATE claim SET run = '', expires_at = 0 WHERE node = 'worker w1'")
    assert probe_journal(url, {}).health is Health.OK
    open_journal(url, StepClock()).close()
    assert rows(url, "SELECT version_num FROM alembic_version") == [(SCHEMA_VERSION,)]


def test_programs_of_one_schema_work_side_by_side(url: str) -> None:
    """A journal of today's version opens while a worker has it open, whatever the program's own version is."""
    first = open_journal(url, StepClock(), Holder("r1"))
    assert NodeId("worker w1") in first.claim([NodeId("worker w1")], "r1").granted
    open_journal(url, StepClock(), Holder("r2")).close()
    first.close()


def test_a_new_database_equals_a_migrated_one(version: str, url: str) -> None:
    """Tables and columns after all migrations are those that the program works with."""
    open_journal(url, StepClock()).close()
    found = columns(url)
    assert {name: set(table.columns.keys()) for name, table in metadata.tables.items()} == {
        name: found[name] for name in metadata.tables
    }


OBSTACLES = {
    "0001": ("ALTER TABLE claim ADD COLUMN since INTEGER", "ALTER TABLE claim DROP COLUMN since", "since"),
    "0002": ("CREATE INDEX event_by_kind ON event (kind)", "DROP INDEX event_by_kind", "event_by_kind"),
    "0003": ("CREATE TABLE stream_head (x INTEGER)", "DROP TABLE stream_head", "stream_head"),
    "0004": (
        "CREATE INDEX incident_state_by_unfinished ON event (kind)",
        "DROP INDEX incident_state_by_unfinished",
        "incident_state_by_unfinished",
    ),
    "0005": ("CREATE INDEX node_state_by_name ON event (kind)", "DROP INDEX node_state_by_name", "node_state_by_name"),
}
"""Version → what is in the way of the last thing that its migration does, how to take it away, and its name."""
SQLITE_ONLY = frozenset({"0005"})
"""Versions whose migration does nothing on PostgreSQL."""


def test_a_migration_that_fails_leaves_the_old_version(version: str, url: str) -> None:
    """It fails at its last thing: of the columns that it had added before, none is left; repaired, it goes through."""
    if version in SQLITE_ONLY and not url.startswith("sqlite"):
        pytest.skip("nothing is migrated there, and nothing can be in its way")
    put, take_away, name = OBSTACLES[version]
    _execute(url, put)
    before = columns(url)
    with pytest.raises(EnvironmentBrokenError, match=name):
        open_journal(url, StepClock())
    assert columns(url) == before
    assert rows(url, "SELECT version_num FROM alembic_version") == [(version,)]
    _execute(url, take_away)
    open_journal(url, StepClock()).close()
    assert rows(url, "SELECT version_num FROM alembic_version") == [(SCHEMA_VERSION,)]


KILLED = """
import os, signal, sys
from sqlalchemy import Engine, event
from clusterctl.edges.doctor.site_checks import probe_journal
from clusterctl.edges.journal import Holder, open_journal
from clusterctl.edges.journal.database import NAMED_CLAIMS
from tests.edges.journal.life import StepClock

@event.listens_for(Engine, "before_cursor_execute")
def die(connection, cursor, statement, *_):
    if "UPDATE alembic_version" in statement:
        os.kill(os.getpid(), signal.SIGKILL)

open_journal(sys.argv[1], StepClock())
"""


def test_a_migration_that_is_killed_leaves_the_old_version(version: str, url: str) -> None:
    """`kill -9` when all is done but the version's own number: the next program finds the old version and migrates."""
    before = columns(url)
    killed = subprocess.run([sys.executable, "-c", KILLED, url], check=False, cwd=ROOT)
    assert killed.returncode == -9
    assert columns(url) == before
    book = open_journal(url, StepClock())
    assert book.state(N1).stage is Stage.GOLD
    book.close()


def _execute(url: str, statement: str) -> None:
    engine = create_engine(url)
    with engine.begin() as connection:
        connection.execute(text(statement))
    engine.dispose()
