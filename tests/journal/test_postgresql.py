"""The journal keeps its promises on PostgreSQL too. Needs the server's programs; skipped where they are absent."""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from clusterctl.edges.journal import SqlJournal, open_journal
from clusterctl.fleet.errors import ClaimLostError
from clusterctl.fleet.event import Kind, NewEvent
from clusterctl.fleet.node import NodeId
from tests.journal.test_journal import N1, StepClock, added

PROGRAMS = sorted(Path("/usr/lib/postgresql").glob("*/bin"))


def as_owner(argv: list[str | Path]) -> None:
    """PostgreSQL refuses to run as root."""
    root = os.geteuid() == 0
    user = pwd.getpwnam("nobody").pw_uid if root else None
    subprocess.run(argv, check=True, capture_output=True, user=user, group=user, cwd="/")


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    """A server of our own, reached by a socket in its own folder."""
    if not PROGRAMS:
        pytest.skip("no PostgreSQL server is installed")
    folder = Path(tempfile.mkdtemp(prefix="pg", dir="/tmp"))
    if os.geteuid() == 0:
        shutil.chown(folder, "nobody")
    data, log = folder / "data", folder / "log"
    as_owner([PROGRAMS[-1] / "initdb", "-D", data, "-U", "clusterctl", "--auth=trust", "--no-sync"])
    options = f"-k {folder} -c listen_addresses='' -c fsync=off"
    as_owner([PROGRAMS[-1] / "pg_ctl", "-D", data, "-l", log, "-w", "-o", options, "start"])
    try:
        yield f"postgresql+psycopg://clusterctl@/postgres?host={folder}"
    finally:
        as_owner([PROGRAMS[-1] / "pg_ctl", "-D", data, "-m", "immediate", "stop"])
        shutil.rmtree(folder)


@pytest.fixture
def book(url: str) -> Iterator[SqlJournal]:
    opened = open_journal(url, StepClock(), run="r1")
    yield opened
    opened.close()


def test_it_is_made_once_and_opened_again(book: SqlJournal, url: str) -> None:
    """The tables are made by the first opening; a second one finds what was written."""
    book.append([added()])
    again = open_journal(url, StepClock())
    assert again.state(N1) == book.state(N1)
    again.close()


def test_events_of_many_writers_keep_one_order(book: SqlJournal, url: str) -> None:
    """Appends from several connections never interleave: the state is the fold, and no event is lost."""

    def write(node: str) -> None:
        mine = open_journal(url, StepClock(), run=node)
        for _ in range(20):
            mine.append([added(node), NewEvent("node", node, Kind.STEP_STARTED, {"step": "discover"})])
        mine.close()

    writers = [threading.Thread(target=write, args=(f"w{i}",)) for i in range(4)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    before = book.states()
    book.rebuild()
    assert book.states() == before
    assert [book.state(NodeId(f"w{i}")).events for i in range(4)] == [40] * 4


def test_claims_are_fenced(book: SqlJournal, url: str) -> None:
    """A node that a living run holds is refused; a token that is no longer the newest does not write."""
    held = book.claim([N1], "r1").granted[N1]
    other = open_journal(url, StepClock(), run="r2")
    assert "run r1" in other.claim([N1], "r2").refused[N1]
    book.release([held])
    newer = other.claim([N1], "r2").granted[N1]
    assert newer.token > held.token
    with pytest.raises(ClaimLostError):
        book.append([added()], claim=held)
    other.release([newer])
    other.close()
