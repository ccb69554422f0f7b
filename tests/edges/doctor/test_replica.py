"""`doctor` on a site whose page and metrics read a standby of the journal's PostgreSQL."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import closing, contextmanager
from datetime import datetime, timedelta
from pathlib import Path

import psycopg
import pytest

from clusterctl.edges.doctor.replica import JournalState, ReplicaState, check_replica, judge_replica
from clusterctl.edges.doctor.site_checks import check_dns
from clusterctl.edges.journal import Holder, open_journal
from clusterctl.edges.site import load_site
from clusterctl.fleet.diagnosis import Diagnosis, Health
from lab.tests.lab_kit import eventually
from tests.edges.journal.life import StepClock
from tests.edges.journal.postgres import PROGRAMS, USER, PostgresServer, running_server
from tests.edges.site.ready import write_ready_site
from tests.steps.fakes import NOW, identified

OK, WARN, BROKEN, NOT_MEASURED = Health.OK, Health.WARN, Health.BROKEN, Health.NOT_MEASURED
SAME = ReplicaState(standby=True, last=(7, "d7"))
PATIENCE_S = 60.0


@contextmanager
def running_standby(primary: PostgresServer) -> Iterator[PostgresServer]:
    """Yield a server that replays the log of `primary`."""
    with running_server() as standby:
        standby.stop()
        subprocess.run(("rm", "-r", standby.data), check=True)
        standby._as_owner("pg_basebackup", "-D", standby.data, "-h", primary.folder, "-U", USER, "-R", "--no-sync")
        standby.start()
        yield standby


def checked(folder: Path, url: str, replica: str) -> Diagnosis:
    write_ready_site(folder)
    with (folder / "site.yml").open("a") as file:
        file.write(f"\njournal: {url}\njournal_replica: {replica}\n")
    return check_replica(load_site(folder))


def ask(server: PostgresServer, database: str, question: str) -> object:
    with psycopg.connect(server.dsn(database), autocommit=True) as connection:
        row = connection.execute(question.encode()).fetchone()
        return None if row is None else row[0]


@pytest.mark.skipif(not PROGRAMS, reason="PostgreSQL is not installed")
def test_a_real_standby_is_compared_with_the_journal(tmp_path: Path) -> None:
    """A standby that has all events; one that has stopped replaying; the journal's own server; another site's journal;
    an empty database; no server.
    """
    with running_server() as server, running_standby(server) as standby:
        url, other, empty = server.url(), server.url(), server.url()
        name = url.partition("@/")[2].partition("?")[0]
        replica = f"postgresql+psycopg://{USER}@/{name}?host={standby.folder}"
        books = [open_journal(one, StepClock(), Holder("r1")) for one in (url, other)]
        with closing(books[0]), closing(books[1]):
            identified(books[0], "n1", "SN-1")
            identified(books[1], "n2", "SN-2")
            count = "SELECT count(*) FROM event"
            assert eventually(lambda: ask(standby, name, count) == ask(server, name, count), PATIENCE_S)
            found = checked(tmp_path / "same", url, replica)
            assert (found.health, "is a standby, has all events" in found.found) == (OK, True), found
            ask(standby, "postgres", "SELECT pg_wal_replay_pause()::text")
            identified(books[0], "n3", "SN-3")
            found = checked(tmp_path / "late", url, replica)
            assert (found.health, "lacks" in found.found) == (WARN, True), found
        for at, (place, health, text) in enumerate(
            ((url, WARN, "no standby"), (other, BROKEN, "another journal"), (empty, BROKEN, "has no journal"))
        ):
            found = checked(tmp_path / str(at), url, place)
            assert (found.health, text in found.found) == (health, True), found
        standby.stop("immediate")
        found = checked(tmp_path / "gone", url, replica)
        assert (found.health, "does not open" in found.found) == (BROKEN, True), found
        standby.start()
        server.stop("immediate")
        assert checked(tmp_path / "unmeasured", url, replica).health is NOT_MEASURED
        server.start()


@pytest.mark.parametrize(
    ("replica", "digest", "late_s", "health"),
    [
        (SAME, "d7", None, OK),
        (SAME, "d7", 5, OK),
        (SAME, "d7", 90, WARN),
        (SAME, "", None, BROKEN),
        (ReplicaState(standby=True, last=None), "", None, OK),
        (ReplicaState(standby=True, last=None), "", 5, OK),
        (ReplicaState(standby=True, last=None), "", 90, BROKEN),
        (ReplicaState(standby=False, last=(7, "d7")), "d7", None, WARN),
    ],
)
def test_a_replica_is_judged_by_its_last_event(
    replica: ReplicaState, digest: str, late_s: int | None, health: Health
) -> None:
    """Lag is the age of the oldest event that it lacks; an idle journal is never late."""
    since: datetime | None = None if late_s is None else NOW - timedelta(seconds=late_s)
    journal = JournalState(digest=digest, missing=0 if since is None else 3, since=since)
    assert judge_replica("db2", replica, journal, NOW).health is health


def test_a_site_without_a_replica_is_healthy(tmp_path: Path) -> None:
    assert check_replica(load_site(write_ready_site(tmp_path))).health is OK


def test_each_server_of_a_url_is_resolved(tmp_path: Path) -> None:
    """The names in `host=`, with ports or without, and the replica's; folders of sockets and addresses are none."""
    write_ready_site(tmp_path)
    with (tmp_path / "site.yml").open("a") as file:
        file.write(
            "\njournal: postgresql+psycopg://c@/d?host=db1.invalid:5432&host=db2.invalid&host=/run/pg&host=127.0.0.1:5432\n"
            "journal_replica: postgresql+psycopg://c@db3.invalid/d\n"
        )
    found = check_dns(load_site(tmp_path)).found
    assert [name for name in ("db1.invalid", "db2.invalid", "db3.invalid") if name in found] == [
        "db1.invalid",
        "db2.invalid",
        "db3.invalid",
    ]
    assert "127.0.0.1" not in found
    assert "/run/pg" not in found
