"""A damaged row is an error that gives the remedy, never a traceback and never another answer."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from clusterctl.edges.journal import SqlJournal, open_journal
from clusterctl.edges.journal.integrity import JournalDamagedError, event_digest, packed, unpacked
from clusterctl.edges.journal.verification import verify
from clusterctl.fleet.errors import ClusterctlError, EnvironmentBrokenError
from clusterctl.fleet.event import Stream
from clusterctl.fleet.node import NodeId
from tests.edges.journal.life import EVIDENCE, N1, StepClock, fill

CELLS = st.one_of(
    st.none(),
    st.integers(-(2**63), 2**63 - 1),
    st.floats(),
    st.text(max_size=20),
    st.binary(max_size=20),
    st.sampled_from(["", "x", "{}", "[]", "null", "9" * 5000, "[" * 5000, "\ud800".encode("utf-8", "surrogatepass")]),
)
SELECTED_BY = {"seq", "stream", "subject", "kind", "node", "name", "digest"}
"""Columns that reads select and order by: a row with another value there is missing, which only `verify` can find."""
TABLES = {"event": "seq", "evidence": "digest", "node_state": "node", "claim": "node", "stream_head": "stream"}


@pytest.fixture(scope="module")
def intact(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The file of a journal with everything in it."""
    folder = tmp_path_factory.mktemp("intact")
    book = open_journal(f"sqlite:///{folder}/journal.db", StepClock())
    fill(book)
    book.close()
    return folder / "journal.db"


def everything(book: SqlJournal) -> list[object]:
    """Return the whole content of the journal, read in every way."""
    read: list[Callable[[], object]] = [
        book.states,
        book.summaries,
        lambda: book.state(N1),
        lambda: book.evidence(EVIDENCE.digest),
        lambda: book.evidences([EVIDENCE.digest]),
        *(lambda stream=stream: list(book.latest(stream)) for stream in Stream),  # type: ignore[misc]
        *(lambda node=node: list(book.history(Stream.NODE, node)) for node in ("n1", "n2", "n3")),  # type: ignore[misc]
        lambda: book.claim([N1, NodeId("n2")], "r9").refused,
    ]
    answers: list[object] = []
    for ask in read:
        try:
            answers.append(ask())
        except ClusterctlError as error:
            answers.append(error)
    return answers


def finds_damage(file: Path) -> bool:
    """Whether `verify` names damages, or ends because the pages cannot be read, with a remedy."""
    try:
        return bool(verify(f"sqlite:///{file}").damages)
    except EnvironmentBrokenError as error:
        return bool(error.remedy)


def opened(file: Path) -> SqlJournal | None:
    """The journal in a damaged file; None where it is refused with a remedy."""
    try:
        return open_journal(f"sqlite:///{file}", StepClock())
    except ClusterctlError as error:
        return None if error.remedy else pytest.fail(str(error))


def damaged(file: Path, content: bytes | Path, statement: str = "", values: tuple[object, ...] = ()) -> None:
    for name in (file.name, f"{file.name}-wal", f"{file.name}-shm"):
        file.with_name(name).unlink(missing_ok=True)
    file.write_bytes(content if isinstance(content, bytes) else content.read_bytes())
    if statement:
        with closing(sqlite3.connect(file)) as raw, raw:
            raw.execute(statement, values)


@settings(deadline=None, max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_any_cell_may_be_anything(tmp_path: Path, intact: Path, data: st.DataObject) -> None:
    """Whatever stands in whichever cell of whichever table: each read answers as before or is an error with a remedy,
    and `verify` finds it wherever a read of events, evidence or states changed.
    """
    file = tmp_path / "journal.db"
    damaged(file, intact)
    with closing(open_journal(f"sqlite:///{file}", StepClock())) as book:
        before = everything(book)[:-1]
    with closing(sqlite3.connect(file)) as raw:
        table = data.draw(st.sampled_from(sorted(TABLES)))
        columns = [row[1] for row in raw.execute(f"PRAGMA table_info({table})") if row[1] != "idempotency_key"]
        keys = [row[0] for row in raw.execute(f"SELECT {TABLES[table]} FROM {table}")]
    column, key, cell = data.draw(st.sampled_from(columns)), data.draw(st.sampled_from(keys)), data.draw(CELLS)
    try:
        damaged(file, intact, f'UPDATE {table} SET "{column}" = ? WHERE "{TABLES[table]}" = ?', (cell, key))
    except sqlite3.IntegrityError:
        return
    with closing(open_journal(f"sqlite:///{file}", StepClock())) as book:
        after = everything(book)[:-1]
    for was, now in zip(before, after, strict=True):
        assert now == was or isinstance(now, EnvironmentBrokenError) or column in SELECTED_BY
        assert not isinstance(now, ClusterctlError) or now.remedy
    if any(now != was for was, now in zip(before, after, strict=True)):
        assert finds_damage(file) or (table, column) == ("node_state", "name")  # the order of a list alone


@settings(deadline=None, max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(at=st.integers(0, 10**9), bit=st.integers(0, 7), size=st.integers(1, 600))
def test_any_bytes_of_the_file_may_be_wrong(tmp_path: Path, intact: Path, at: int, bit: int, size: int) -> None:
    """Flipped bits and overwritten stretches of the file: an answer as before, or an error with a remedy."""
    file = tmp_path / "journal.db"
    damaged(file, intact)
    with closing(open_journal(f"sqlite:///{file}", StepClock())) as book:
        before = everything(book)[:-1]
    wrong = bytearray(intact.read_bytes())
    at %= len(wrong)
    wrong[at] ^= 1 << bit
    wrong[at + 1 : at + size] = bytes(len(wrong[at + 1 : at + size]))
    damaged(file, bytes(wrong))
    book = opened(file)
    if book is None:
        return
    with closing(book):
        after = everything(book)[:-1]
    for was, now in zip(before, after, strict=True):
        if now != was and not isinstance(now, EnvironmentBrokenError):
            assert finds_damage(file)


def test_an_altered_event_with_a_digest_of_its_own_breaks_the_chain(tmp_path: Path, intact: Path) -> None:
    """Who alters an event and computes its digest again is found by the event after it."""
    file = tmp_path / "journal.db"
    damaged(file, intact)
    with closing(sqlite3.connect(file)) as raw, raw:
        raw.row_factory = sqlite3.Row
        row = dict(raw.execute("SELECT * FROM event WHERE stream = 'node' ORDER BY seq LIMIT 1").fetchone())
        row["actor"] = "mallory"
        values = (row["actor"], event_digest(row["previous"], row), row["seq"])
        raw.execute("UPDATE event SET actor = ?, digest = ? WHERE seq = ?", values)
    assert [damage.where for damage in verify(f"sqlite:///{file}").damages] == ["event 3"]


@pytest.mark.parametrize("lost", ["= 5", "> 8", "< 4", "IS NOT NULL"])
def test_lost_events_are_found(tmp_path: Path, intact: Path, lost: str) -> None:
    """Events that are missing in the middle, at the end, at the beginning, or all."""
    damaged(tmp_path / "journal.db", intact, f"DELETE FROM event WHERE seq {lost}")
    found = verify(f"sqlite:///{tmp_path}/journal.db")
    assert found.damages
    assert all(damage.cause and damage.where for damage in found.damages)


VERSIONS = [
    ("UPDATE alembic_version SET version_num = ?", ("",)),
    ("UPDATE alembic_version SET version_num = ?", (b"\xff",)),
    ("UPDATE alembic_version SET version_num = ?", ("0000",)),
    ("INSERT INTO alembic_version VALUES (?)", ("0001",)),
    ("DELETE FROM alembic_version", ()),
]


@pytest.mark.parametrize(("statement", "values"), VERSIONS)
def test_a_damaged_version_is_damage(tmp_path: Path, intact: Path, statement: str, values: tuple[object, ...]) -> None:
    """No migration begins on it, and `verify` has the remedy, too."""
    file = tmp_path / "journal.db"
    damaged(file, intact, statement, values)
    with pytest.raises(JournalDamagedError, match="alembic_version") as found:
        open_journal(f"sqlite:///{file}", StepClock())
    assert "journal restore" in found.value.remedy
    with pytest.raises(JournalDamagedError, match="alembic_version"):
        verify(f"sqlite:///{file}")


def test_the_ends_of_damaged_streams_can_be_printed(tmp_path: Path, intact: Path) -> None:
    """Bytes in the place of a stream's name or of a digest: `journal verify` prints text."""
    damaged(tmp_path / "journal.db", intact, "UPDATE event SET stream = ?, digest = ? WHERE seq = 5", (b"\xff", b"\0"))
    found = verify(f"sqlite:///{tmp_path}/journal.db")
    assert found.damages
    assert all(isinstance(text, str) for pair in found.heads.items() for text in pair)


def test_an_intact_journal_has_no_damage(url: str) -> None:
    """Whatever life it had, on both engines; the report counts what it read."""
    book = open_journal(url, StepClock())
    fill(book)
    book.close()
    found = verify(url)
    assert found.damages == ()
    assert (found.events, found.evidence, found.nodes) == (24, 1, 3)
    assert set(found.heads) == {"node", "part", "run"}


def test_evidence_that_unpacks_to_more_than_any_is_damage() -> None:
    """A kilobyte of a hostile row may hold gigabytes: no more than the limit is unpacked."""
    row = {**packed(EVIDENCE), "digest": EVIDENCE.digest}
    assert unpacked(row, len(EVIDENCE.content)) == EVIDENCE
    with pytest.raises(JournalDamagedError):
        unpacked(row, len(EVIDENCE.content) - 1)
