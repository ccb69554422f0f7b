"""The journal keeps everything, in order, and its states are always the fold of its events."""

from __future__ import annotations

import os
import sqlite3
import stat
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clusterctl.edges.journal import SqlJournal, open_journal
from clusterctl.fleet.codec import report_to_data
from clusterctl.fleet.errors import ClaimLostError, EnvironmentBrokenError, UsageError
from clusterctl.fleet.event import Kind, NewEvent
from clusterctl.fleet.finding import Evidence, Finding, Origin, Report, Verdict
from clusterctl.fleet.history import fold
from clusterctl.fleet.node import NodeId, Stage
from clusterctl.fleet.state import summarise

N1 = NodeId("n1")


class StepClock:
    """A clock that moves one second a look."""

    def __init__(self) -> None:
        self.at = datetime(2026, 1, 1, tzinfo=UTC)

    def now(self) -> datetime:
        self.at += timedelta(seconds=1)
        return self.at


def journal(tmp_path: Path, run: str = "r1") -> SqlJournal:
    return open_journal(f"sqlite:///{tmp_path}/journal.db", StepClock(), run=run)


def added(node: str = "n1") -> NewEvent:
    return NewEvent(
        "node", node, Kind.NODE_DESCRIBED, {"name": f"node-{node}", "bmc": "192.0.2.1", "rack": "A01", "unit": 4}
    )


def reported(step: str, verdict: Verdict) -> NewEvent:
    report = Report(step, "", (Finding("x", verdict, cause="seen"),), frozenset({Origin.REAL}))
    return NewEvent("node", "n1", Kind.REPORT_RECORDED, {"report": report_to_data(report)})


EVENTS = st.sampled_from(
    [
        added(),
        NewEvent("node", "n1", Kind.NODE_ADDRESSED, {"address": "192.0.2.9"}),
        NewEvent("node", "n1", Kind.HOST_KEY_PINNED, {"public": "ssh-ed25519 AAAA"}),
        NewEvent("node", "n1", Kind.STEP_STARTED, {"step": "install"}),
        NewEvent("node", "n1", Kind.ACT_INTENDED, {"act": "install.start", "target": "S1"}),
        NewEvent("node", "n1", Kind.ACT_OBSERVED, {"act": "install.start", "result": "installing"}),
        reported("install", Verdict.PASS),
        reported("cable", Verdict.FAIL),
        NewEvent("node", "n1", Kind.STAGE_ADVANCED, {"to": "installed", "verdict": "pass"}),
        NewEvent(
            "node", "n1", Kind.NODE_HELD, {"step": "cable", "cause": "c", "remedy": "r", "verdict": "inconclusive"}
        ),
        NewEvent(
            "node", "n1", Kind.NODE_QUARANTINED, {"step": "cable", "cause": "c", "remedy": "r", "verdict": "fail"}
        ),
        NewEvent("node", "n1", Kind.NODE_RELEASED, {"to": "configured", "reason": "cable replaced"}),
        NewEvent("part", "GPU1", Kind.ACT_OBSERVED, {"act": "seen"}),
    ]
)


@given(st.lists(st.lists(EVENTS, max_size=4), max_size=8))
def test_stored_state_equals_the_fold(batches: list[list[NewEvent]]) -> None:
    """After any events in any batches, the stored state is what folding the stored events gives; so is a rebuild."""
    book = open_journal("sqlite://", StepClock())
    for batch in batches:
        book.append(batch)
    expected = fold(book.history("node", N1), N1)
    assert book.state(N1) == expected
    assert book.summaries() == tuple(summarise(state) for state in book.states())
    book.rebuild()
    assert book.state(N1) == expected
    book.close()


def test_events_keep_their_order_and_actor(tmp_path: Path) -> None:
    """`seq` grows, times are UTC, and each event names its run and actor."""
    book = journal(tmp_path)
    book.append([added(), NewEvent("node", "n1", Kind.STEP_STARTED, {"step": "discover"})])
    first, second = book.history("node", "n1")
    assert (first.seq < second.seq, second.run, second.actor) == (True, "r1", "clusterctl")
    assert first.at.tzinfo is not None


def test_only_the_owner_may_read_it(tmp_path: Path) -> None:
    """The journal's file has mode 0600."""
    journal(tmp_path)
    assert stat.S_IMODE((tmp_path / "journal.db").stat().st_mode) == 0o600


def test_evidence_is_kept_once_and_comes_back_whole(tmp_path: Path) -> None:
    """Evidence is found by digest, byte for byte; unknown digests are None."""
    book = journal(tmp_path)
    item = Evidence("ibstat", "node001", datetime(2026, 1, 1, tzinfo=UTC), Origin.SIMULATED, b"\x00CA 'mlx5_0'\n" * 99)
    book.store([item, item])
    book.store([item])
    assert book.evidence(item.digest) == item
    assert book.evidence(type(item.digest)("0" * 64)) is None


def test_a_failed_append_leaves_nothing(tmp_path: Path) -> None:
    """A batch is written whole or not at all."""
    book = journal(tmp_path)
    with pytest.raises(KeyError):
        book.append([added(), NewEvent("node", "n1", Kind.STAGE_ADVANCED, {})])
    assert list(book.history("node", "n1")) == []
    assert book.states() == ()


def test_a_second_run_is_refused_and_told_who_holds_it(tmp_path: Path) -> None:
    """A node that a living run holds is refused, with the holder's name; a released one is granted."""
    first, second = journal(tmp_path), journal(tmp_path, "r2")
    held = first.claim([N1], "r1")
    refused = second.claim([N1], "r2")
    assert refused.granted == {}
    assert f"run r1 (pid {os.getpid()}" in refused.refused[N1]
    first.release(held.granted.values())
    assert N1 in second.claim([N1], "r2").granted


def test_a_dead_owner_is_taken_over_and_its_token_no_longer_writes(tmp_path: Path) -> None:
    """A claim of a process of this machine that died is free at once; what it still wants to write is refused."""
    script = (
        "import sys; from pathlib import Path; from tests.journal.test_journal import journal, N1;"
        "print(journal(Path(sys.argv[1]), 'dead').claim([N1], 'dead').granted[N1].token)"
    )
    done = subprocess.run([sys.executable, "-c", script, tmp_path], check=True, capture_output=True, text=True)
    book = journal(tmp_path)
    claim = book.claim([N1], "r1").granted[N1]
    stale = type(claim)(N1, "dead", int(done.stdout))
    assert claim.token > stale.token
    with pytest.raises(ClaimLostError):
        book.append([added()], claim=stale)
    book.append([added()], claim=claim)
    assert book.state(N1).stage is Stage.SEEN


def test_a_newer_journal_is_refused(tmp_path: Path) -> None:
    """A journal or an event written by a newer program is refused with words, not misread."""
    book = journal(tmp_path)
    book.append([added()])
    with sqlite3.connect(tmp_path / "journal.db") as raw:
        raw.execute("UPDATE event SET version = 99")
    with pytest.raises(UsageError, match="version 99"):
        list(book.history("node", "n1"))
    with sqlite3.connect(tmp_path / "journal.db") as raw:
        raw.execute("UPDATE alembic_version SET version_num = '9999'")
    with pytest.raises(UsageError, match="version 9999"):
        journal(tmp_path)


def test_a_file_that_is_no_journal_is_named(tmp_path: Path) -> None:
    """Broken files end in a sentence that names the file and what to do."""
    (tmp_path / "journal.db").write_bytes(b"not a database at all" * 200)
    with pytest.raises(EnvironmentBrokenError, match=r"journal\.db"):
        journal(tmp_path)


def test_a_journal_that_may_not_be_written_is_named(tmp_path: Path) -> None:
    """A path that cannot hold a journal ends in a sentence, not in a traceback."""
    (tmp_path / "journal.db").mkdir()
    with pytest.raises(EnvironmentBrokenError, match=r"journal\.db.*cannot be written"):
        journal(tmp_path)
