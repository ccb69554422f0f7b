"""The journal keeps everything, in order, and its states are always the fold of its events."""

from __future__ import annotations

import sqlite3
import stat
import subprocess
import sys
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sqlalchemy import create_engine, text
from sqlalchemy.event import listen

from clusterctl.edges.journal import Holder, SqlJournal, open_journal
from clusterctl.edges.journal.integrity import event_digest
from clusterctl.fleet.errors import ConflictError, EnvironmentBrokenError, UsageError
from clusterctl.fleet.event import Kind, NewEvent, Stream
from clusterctl.fleet.finding import Evidence, Origin, Verdict
from clusterctl.fleet.fold import fold
from clusterctl.fleet.node import NodeId
from clusterctl.fleet.state import summarise
from tests.edges.journal.conftest import Open
from tests.edges.journal.life import N1, StepClock, added, report, started
from tests.events import advances, data_of, new_event

WAIVER = {"check": "gpu_ecc", "subject": "gpu 3", "reason": "harmless"}
EVENTS = st.sampled_from(
    [
        added(),
        started(step="install"),
        new_event("node", "n1", Kind.NODE_ADDRESSED, {"address": "192.0.2.9"}),
        new_event("node", "n1", Kind.HOST_KEY_PINNED, {"public": "ssh-ed25519 AAAA"}),
        new_event("node", "n1", Kind.ACT_INTENDED, {"act": "install.start", "target": "S1"}),
        new_event("node", "n1", Kind.ACT_OBSERVED, {"act": "install.start", "message": "installing"}),
        report("n1", "install", Verdict.PASS),
        report("n1", "cable", Verdict.FAIL),
        *advances("n1", "installed"),
        new_event(
            "node", "n1", Kind.NODE_HELD, {"step": "cable", "cause": "c", "remedy": "r", "verdict": "inconclusive"}
        ),
        new_event(
            "node", "n1", Kind.NODE_QUARANTINED, {"step": "cable", "cause": "c", "remedy": "r", "verdict": "fail"}
        ),
        new_event("node", "n1", Kind.NODE_RELEASED, {"to": "configured", "reason": "cable replaced"}),
        new_event(
            "node", "n1", Kind.REINSTALL_ORDERED, {"reason": "x", "serial": "S1", "root_disk": "D", "was": "cabled"}
        ),
        new_event("node", "n1", Kind.HOLD_SET, {"reason": "ticket", "until": "2026-02-01T00:00:00+00:00"}),
        new_event("node", "n1", Kind.HOLD_LIFTED, {"reason": "done"}),
        new_event("node", "n1", Kind.WAIVER_GRANTED, {**WAIVER, "until": "2026-02-01T00:00:00+00:00"}),
        new_event("node", "n1", Kind.WAIVER_REVOKED, WAIVER),
        new_event("node", "n1", Kind.NODE_MERGED, {"old": "S1", "new": "S2", "reason": "board", "node": "node-n1"}),
        new_event("node", "n1", Kind.NODE_RETIRED, {"reason": "sold", "into": "n2", "wiped": False}),
        new_event("part", "GPU1", Kind.ACT_OBSERVED, {"act": "log.clear", "result": "done"}),
    ]
)


@settings(deadline=None)
@given(st.lists(st.lists(EVENTS, max_size=4), max_size=8))
def test_stored_state_equals_the_fold(batches: list[list[NewEvent]]) -> None:
    """After any events in any batches, the stored state is what folding the stored events gives; so is a rebuild.

    A batch with a move that the stage table does not have leaves nothing.
    """
    book = open_journal("sqlite://", StepClock())
    for batch in batches:
        with suppress(ConflictError):  # what the stage table does not allow
            book.append(batch)
    expected = fold(book.history(Stream.NODE, N1), N1)
    assert book.state(N1) == expected
    assert book.summaries() == tuple(summarise(state) for state in book.states())
    book.rebuild()
    assert book.state(N1) == expected
    book.close()


def test_it_is_made_once_and_opened_again(opened: Open) -> None:
    """The tables are made by the first opening; a second one finds what was written."""
    first = opened()
    first.append([added()])
    assert opened().state(N1) == first.state(N1)


def test_opened_by_many_at_once_it_is_made_once(url: str) -> None:
    """Programs that start together on a new journal all get one; none is refused."""

    def one(name: str) -> None:
        book = open_journal(url, StepClock(), Holder(name))
        book.append([added(name)])
        book.close()

    with ThreadPoolExecutor(4) as programs:
        list(programs.map(one, [f"n{i}" for i in range(4)]))
    book = open_journal(url, StepClock())
    assert [state.name for state in book.states()] == [f"node-n{i}" for i in range(4)]
    book.close()


def test_events_keep_their_order_and_actor(book: SqlJournal) -> None:
    """`seq` grows, times are UTC, and each event names its run and actor."""
    book.append([added(), started()])
    first, second = book.history(Stream.NODE, "n1")
    assert (first.seq < second.seq, second.run, second.actor) == (True, "r1", "clusterctl")
    assert first.at.tzinfo is not None


def test_events_of_many_writers_keep_one_order(book: SqlJournal, opened: Open) -> None:
    """Appends from several connections never interleave: the state is the fold, and no event is lost."""

    def write(node: str, mine: SqlJournal) -> None:
        for _ in range(20):
            mine.append([added(node), started(node)])

    with ThreadPoolExecutor(4) as writers:
        list(writers.map(write, [f"w{i}" for i in range(4)], [opened(f"w{i}") for i in range(4)]))
    before = book.states()
    book.rebuild()
    assert book.states() == before
    assert [book.state(NodeId(f"w{i}")).events for i in range(4)] == [40] * 4


def test_evidence_is_kept_once_and_comes_back_whole(book: SqlJournal) -> None:
    """Evidence is found by digest, byte for byte; unknown digests are None."""
    item = Evidence("ibstat", "node001", datetime(2026, 1, 1, tzinfo=UTC), Origin.SIMULATED, b"\x00CA 'mlx5_0'\n" * 99)
    book.store([item, item])
    book.store([item])
    assert book.evidence(item.digest) == item
    assert book.evidence(type(item.digest)("0" * 64)) is None
    assert book.evidences([type(item.digest)("0" * 64), item.digest] * 1200) == {item.digest: item}


def test_a_failed_append_leaves_nothing(book: SqlJournal) -> None:
    """A batch is written whole or not at all."""
    with pytest.raises(ConflictError, match="cannot advance to gold"):
        book.append([added(), new_event("node", "n1", Kind.STAGE_ADVANCED, {"to": "gold", "verdict": "pass"})])
    assert list(book.history(Stream.NODE, "n1")) == []
    assert book.states() == ()


def test_two_that_name_a_new_node_at_once_do_not_make_two_of_it(book: SqlJournal) -> None:
    """A second node of the same name is refused as a conflict, so that the later one reads again; nothing is written."""
    book.append([added()])
    twin = NewEvent(Stream.NODE, "n2", added().payload)
    with pytest.raises(ConflictError):
        book.append([twin])
    assert [state.id for state in book.states()] == ["n1"]


def test_a_newer_event_or_journal_is_refused(book: SqlJournal, opened: Open, url: str) -> None:
    """What a newer program wrote is refused with words and exit code 2, not misread."""
    book.append([added()])
    execute(url, "UPDATE event SET version = 99")
    with pytest.raises(EnvironmentBrokenError, match="does not match its digest"):
        list(book.history(Stream.NODE, "n1"))
    row = rows(url, "SELECT * FROM event")[0]
    execute(url, f"UPDATE event SET digest = '{event_digest('', row)}'")
    with pytest.raises(UsageError, match="version 99"):
        list(book.history(Stream.NODE, "n1"))
    execute(url, "UPDATE alembic_version SET version_num = '9999'")
    with pytest.raises(UsageError, match="version 9999") as refusal:
        opened()
    assert refusal.value.exit_code == 2


def execute(url: str, statement: str) -> None:
    engine = create_engine(url)
    with engine.begin() as connection:
        connection.execute(text(statement))
    engine.dispose()


def rows(url: str, query: str) -> list[Mapping[str, Any]]:
    engine = create_engine(url)
    with engine.connect() as connection:
        found = [dict(row) for row in connection.execute(text(query)).mappings()]
    engine.dispose()
    return found


def sqlite_journal(folder: Path) -> SqlJournal:
    return open_journal(f"sqlite:///{folder}/journal.db", StepClock())


def test_only_the_owner_may_read_it(tmp_path: Path) -> None:
    """A SQLite journal's files have mode 0600, those that SQLite makes next to it too."""
    sqlite_journal(tmp_path).append([added()])
    modes = {file.name: stat.S_IMODE(file.stat().st_mode) for file in tmp_path.iterdir()}
    assert modes == dict.fromkeys(("journal.db", "journal.db-shm", "journal.db-wal"), 0o600)


def test_a_file_that_is_no_journal_is_named(tmp_path: Path) -> None:
    """Broken files end in a sentence that names the file and what to do."""
    (tmp_path / "journal.db").write_bytes(b"not a database at all" * 200)
    with pytest.raises(EnvironmentBrokenError, match=r"journal\.db"):
        sqlite_journal(tmp_path)


def test_a_journal_that_may_not_be_written_is_named(tmp_path: Path) -> None:
    """A path that cannot hold a journal ends in a sentence, not in a traceback."""
    (tmp_path / "journal.db").mkdir()
    with pytest.raises(EnvironmentBrokenError, match=r"journal\.db.*cannot be written"):
        sqlite_journal(tmp_path)


def test_opened_twice_in_one_process_no_lock_is_lost(tmp_path: Path) -> None:
    """What another process does between does not end what the first connection is about."""
    first = sqlite_journal(tmp_path)
    first.append([added()])
    second = sqlite_journal(tmp_path)
    program = "import sqlite3, sys; sqlite3.connect(sys.argv[1]).execute('SELECT count(*) FROM event').fetchall()"
    subprocess.run([sys.executable, "-c", program, tmp_path / "journal.db"], check=True)
    assert (tmp_path / "journal.db-wal").exists()
    first.append([new_event("node", "n1", Kind.NODE_ADDRESSED, {"address": "192.0.2.9"})])
    assert second.state(N1).address == "192.0.2.9"


def test_a_server_that_is_not_there_is_named_without_the_password(tmp_path: Path) -> None:
    """No server at the URL: a sentence and exit code 3 at once; the URL's password is not in it."""
    url = f"postgresql+psycopg://u:Tr0ub4dor@/postgres?host={tmp_path}"
    with pytest.raises(EnvironmentBrokenError, match="database failed") as broken:
        open_journal(url, StepClock())
    assert broken.value.exit_code == 3
    assert "Tr0ub4dor" not in str(broken.value)


def test_a_foreign_database_is_not_written_over(tmp_path: Path) -> None:
    """A database that holds foreign tables of our names is left as it was."""
    with sqlite3.connect(tmp_path / "journal.db") as raw:
        raw.execute("CREATE TABLE event (what TEXT)")
    with pytest.raises(EnvironmentBrokenError, match="event"):
        sqlite_journal(tmp_path)
    with sqlite3.connect(tmp_path / "journal.db") as raw:
        assert raw.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall() == [("event",)]


def test_the_latest_of_a_stream(book: SqlJournal) -> None:
    """The last event of each subject and kind of one stream, in their order."""
    seen = Kind.FABRIC_LINK_SEEN
    for width in (4, 1):
        book.append(
            [new_event("fabric", "b", seen, {"width": width}), new_event("fabric", "a", seen, {"width": width})]
        )
    book.append([added(), new_event("fabric", "a", Kind.FABRIC_DEVICE_SEEN)])
    latest = [(event.subject, event.kind, data_of(event).get("width")) for event in book.latest(Stream.FABRIC)]
    assert latest == [("b", seen, 1), ("a", seen, 1), ("a", Kind.FABRIC_DEVICE_SEEN, None)]


def test_what_happened_of_late(book: SqlJournal) -> None:
    """Events of some kinds over all subjects and streams, from a moment on, in their order."""
    first, second = book.append(
        [*(new_event(stream, "x", Kind.RUN_STARTED, {"steps": ["discover"]}) for stream in ("node", "run"))]
    )
    book.append([added()])
    assert [event.seq for event in book.recent([Kind.RUN_STARTED], first.at)] == [first.seq, second.seq]
    assert list(book.recent([Kind.RUN_STARTED], second.at + timedelta(seconds=1))) == []
    assert list(book.recent([Kind.RUN_FINISHED], first.at)) == []


def test_thousands_of_events_and_the_names_of_nodes_are_read_in_their_order(book: SqlJournal) -> None:
    """More than one query takes: each once, in the order of the numbers, and those after a number alone."""
    book.append([added()])
    seqs = [event.seq for event in book.append([started() for _ in range(1203)])]
    assert [event.seq for event in book.recent([Kind.STEP_STARTED], datetime(2000, 1, 1, tzinfo=UTC))] == seqs
    assert [event.seq for event in book.later([Kind.STEP_STARTED], seqs[600])] == seqs[601:]
    assert dict(book.names()) == {one.name: one.id for one in book.summaries()}


def test_histories_of_many_nodes(book: SqlJournal) -> None:
    written = {f"n{number}": book.append([added(f"n{number}")])[0].seq for number in (1, 2, 3)}
    many = [NodeId("n1"), NodeId("n3"), *(NodeId(f"none{number}") for number in range(1200))]
    assert [event.seq for event in book.histories(many, [Kind.NODE_DESCRIBED])] == [written["n1"], written["n3"]]
    assert list(book.histories(many, [Kind.NODE_QUARANTINED])) == []
    assert list(book.histories([], [Kind.NODE_DESCRIBED])) == []


def test_a_list_of_the_fleet_reads_an_index_alone(book: SqlJournal) -> None:
    """In SQLite a state of 40 kB lies before the digest of its summary: a list of 32,768 nodes must not read them."""
    statements: list[str] = []
    engine = book._database.engine
    if engine.dialect.name != "sqlite":
        pytest.skip("PostgreSQL keeps long states out of the rows")
    book.append([added()])
    listen(engine, "before_cursor_execute", lambda *found: statements.append(found[2]))
    assert len(book.summaries()) == 1
    (query,) = (one for one in statements if "summary" in one)
    with engine.connect() as connection:
        (plan,) = connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {query}").all()
    assert "COVERING INDEX node_state_by_name" in plan[-1]


def test_all_nodes_one_after_the_other(book: SqlJournal) -> None:
    """`each_state` yields what `states` returns, also where one query does not take all of them."""
    names = [f"n{number}" for number in range(503)]
    book.append([added(name) for name in names])
    assert sorted(book.each_state(), key=lambda one: one.name) == sorted(book.states(), key=lambda one: one.name)
