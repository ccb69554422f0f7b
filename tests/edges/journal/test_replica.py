"""Reads go to the replica while it answers; writes, and reads without it, go to the journal's database."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

from clusterctl.edges.journal import Holder, SqlJournal
from clusterctl.edges.journal.database import bring_up, connect
from clusterctl.edges.journal.replica import ReplicaReads
from clusterctl.fleet.event import Stream
from tests.edges.journal.life import N1, StepClock, added, started


def test_a_replica_answers_reads_while_it_can(tmp_path: Path) -> None:
    """What the replica has not got yet is not seen; where it is damaged, the database answers with all of it."""
    urls = [f"sqlite:///{tmp_path}/{name}.db" for name in ("journal", "replica")]
    primary, replica = map(connect, urls)
    for database in (primary, replica):
        bring_up(database)
    book = SqlJournal(primary, StepClock(), Holder("r1"), ReplicaReads(replica, primary))
    book.append([added()])
    with (
        closing(sqlite3.connect(tmp_path / "journal.db")) as source,
        closing(sqlite3.connect(tmp_path / "replica.db")) as target,
    ):
        source.backup(target)
    claim = book.claim([N1], "r1").granted[N1]
    book.append([started()], claim=claim)
    assert [event.kind.value for event in book.history(Stream.NODE, "n1")] == ["node.described"]
    assert book.health().last_seq == book.state(N1).last_seq == 1
    replica.engine.dispose()
    (tmp_path / "replica.db").write_bytes(b"no database" * 1000)
    (tmp_path / "replica.db-wal").unlink(missing_ok=True)
    assert book.health().last_seq == book.state(N1).last_seq == 2
    book.close()
