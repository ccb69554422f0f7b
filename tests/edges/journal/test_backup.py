"""A backup holds all of one moment; what is restored is what was backed up, on either engine."""

from __future__ import annotations

import sqlite3
import stat
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from clusterctl.edges.journal import Holder, SqlJournal, backup, open_journal
from clusterctl.edges.journal.verification import verify
from clusterctl.fleet.errors import ConflictError, EnvironmentBrokenError, UsageError
from clusterctl.fleet.event import Stream
from clusterctl.fleet.finding import Evidence, Origin
from clusterctl.fleet.node import NodeId
from tests.edges.journal.life import AT, EVIDENCE, N1, StepClock, added, fill, started


@pytest.fixture
def book(url: str) -> Iterator[SqlJournal]:
    """A journal with a life, and without a live claim."""
    book = open_journal(url, StepClock(), Holder("r1"))
    fill(book)
    book.release(book.claim([NodeId("n2")], "r1").granted.values())
    yield book
    book.close()


def content(book: SqlJournal) -> list[object]:
    histories = [list(book.history(Stream.NODE, node)) for node in ("n1", "n2", "n3", "n9")]
    return [book.states(), book.summaries(), book.evidence(EVIDENCE.digest), *histories]


def test_what_is_restored_is_what_was_backed_up(book: SqlJournal, url: str, tmp_path: Path) -> None:
    """Later events are gone, everything of before is back, and the journal goes on with a number of its own."""
    before, file = content(book), tmp_path / "backup.db"
    found = backup.back_up(url, file)
    assert found.damages == ()
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert [path.name for path in tmp_path.iterdir() if "backup" in path.name] == ["backup.db"]
    (late,) = book.append([added("n9")])
    restored, moved = backup.restore(url, file)
    assert (restored.heads, moved) == (found.heads, None)
    assert content(book) == before
    (next_one,) = book.append([added("n9")])
    assert next_one.seq > late.seq
    assert verify(url).damages == ()


def test_a_backup_goes_to_another_database(book: SqlJournal, url: str, tmp_path: Path) -> None:
    """A backup of either engine is a journal in SQLite, and restores into one that does not exist yet."""
    backup.back_up(url, tmp_path / "backup.db")
    other = f"sqlite:///{tmp_path}/other/journal.db"
    backup.restore(other, tmp_path / "backup.db")
    with closing(open_journal(other, StepClock())) as copy:
        assert content(copy) == content(book)


def test_a_run_with_claims_is_not_disturbed(book: SqlJournal, url: str, tmp_path: Path) -> None:
    """Backups are taken during a run; restore and compact are refused, name it, and change nothing."""
    held = book.claim([N1], "r1").granted[N1]
    backup.back_up(url, tmp_path / "backup.db")
    before = content(book)
    for act in (lambda: backup.restore(url, tmp_path / "backup.db"), lambda: backup.compact(url)):
        with pytest.raises(ConflictError, match="run r1"):
            act()
    assert content(book) == before
    book.append([started()], claim=held)


def test_a_worker_that_waits_is_in_no_way_of_a_compaction(book: SqlJournal, url: str) -> None:
    """A site whose workers always run can be compacted; a restore still wants them stopped."""
    (claim,) = book.claim([NodeId("worker w1")], "r2").granted.values()
    backup.compact(url)
    assert not book.renew([claim])
    with pytest.raises(ConflictError, match="run r2"):
        require_released(url)


def require_released(url: str) -> None:
    with backup.opened(url) as database:
        database.write(backup.require_idle)


def killed(*_: object) -> None:
    raise KeyboardInterrupt


def test_a_damaged_file_is_kept_and_replaced(tmp_path: Path) -> None:
    """A SQLite journal whose pages are lost: its file is moved aside, the backup takes its place."""
    file, url = tmp_path / "journal.db", f"sqlite:///{tmp_path}/journal.db"
    with closing(open_journal(url, StepClock())) as book:
        fill(book)
        book.release(book.claim([NodeId("n2")], "").granted.values())
        before = content(book)
    backup.back_up(url, tmp_path / "backup.db")
    wrong = bytearray(file.read_bytes())
    wrong[4096:] = b"\xff" * (len(wrong) - 4096)
    file.write_bytes(wrong)
    with pytest.raises(EnvironmentBrokenError) as refused:
        open_journal(url, StepClock())
    assert "journal restore" in refused.value.remedy
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Path, "replace", killed)
        with pytest.raises(KeyboardInterrupt):
            backup.restore(url, tmp_path / "backup.db")
    assert file.read_bytes() == bytes(wrong)  # no run finds an empty journal in between
    _, moved = backup.restore(url, tmp_path / "backup.db")
    assert moved is not None
    assert moved.read_bytes() == bytes(wrong)
    with closing(open_journal(url, StepClock())) as book:
        assert content(book) == before


def test_a_damaged_backup_is_refused(book: SqlJournal, url: str, tmp_path: Path) -> None:
    """A backup that was altered replaces nothing, and the error names the damage; so does one that is missing."""
    file = tmp_path / "backup.db"
    backup.back_up(url, file)
    with closing(sqlite3.connect(file)) as raw, raw:
        raw.execute("UPDATE event SET actor = 'mallory' WHERE seq = 3")
    before = content(book)
    with pytest.raises(EnvironmentBrokenError, match="event 3"):
        backup.restore(url, file)
    with pytest.raises(UsageError, match="no such backup"):
        backup.restore(url, tmp_path / "nothing.db")
    with pytest.raises(UsageError, match="already"):
        backup.back_up(url, file)
    assert content(book) == before


def test_compaction_removes_only_what_no_event_names(book: SqlJournal, url: str) -> None:
    """Evidence that a killed run left is removed; all events of the journal stay."""
    before = content(book)
    left = Evidence("nvidia-smi", "n1", AT, Origin.REAL, b"left over" * 1000)
    book.store([left])
    removed = backup.compact(url)
    assert removed.digests == (left.digest,)
    assert book.evidence(left.digest) is None
    assert content(book) == before
    assert verify(url).damages == ()


def test_compaction_repairs_states(book: SqlJournal, url: str) -> None:
    """States are computed again from the events, whatever stood there."""
    before = content(book)
    book._database.write(lambda connection: connection.exec_driver_sql("UPDATE node_state SET state = '{}'"))
    with pytest.raises(EnvironmentBrokenError, match="journal compact"):
        book.states()
    backup.compact(url)
    assert content(book) == before
