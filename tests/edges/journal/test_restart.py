"""PostgreSQL goes away in the middle: what was acknowledged is there once, what was not is there once or is an error."""

from __future__ import annotations

import itertools
import tempfile
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest
from sqlalchemy import Connection, create_engine, event, func, select, text

from clusterctl.edges.journal import Holder, SqlJournal, open_journal
from clusterctl.edges.journal.database import Database, connect
from clusterctl.fleet.errors import ClaimLostError, EnvironmentBrokenError, JournalUnavailableError
from clusterctl.fleet.event import Kind, NewEvent, Stream
from clusterctl.fleet.finding import Evidence
from clusterctl.fleet.node import NodeId
from clusterctl.ports import Append
from tests.edges.journal.cutting_proxy import Cut, CuttingProxy, cutting_proxy
from tests.edges.journal.life import EVIDENCE, N1, StepClock, added, started
from tests.edges.journal.postgres import PostgresServer
from tests.events import data_of, new_event

WRITERS = 3


@pytest.fixture
def url(postgresql: PostgresServer) -> str:
    return postgresql.url()


@pytest.fixture
def proxied(url: str) -> Iterator[tuple[CuttingProxy, SqlJournal]]:
    """A journal whose line can be cut. A Unix socket's path is short: pytest's folders are not."""
    with tempfile.TemporaryDirectory(dir="/tmp") as folder, cutting_proxy(url, Path(folder)) as (proxy, through):
        book = open_journal(through, StepClock(), Holder("r1"))
        yield proxy, book
        book.close()


@pytest.mark.parametrize("cut", Cut)
def test_an_append_with_a_cut_connection_is_written_once(
    proxied: tuple[CuttingProxy, SqlJournal], url: str, cut: Cut
) -> None:
    """Whether the `COMMIT` or only its answer was lost: each event is there once, and the append returns what is there."""
    proxy, book = proxied
    claim = book.claim([N1], "r1").granted[N1]
    book.append([added()], claim=claim)
    proxy.cut = cut
    written = book.append([started(), started(step="install")], claim=claim)
    assert proxy.cuts == 1
    assert list(book.history(Stream.NODE, N1))[1:] == list(written)
    assert [data_of(event)["step"] for event in written] == ["discover", "install"]
    before = book.state(N1)
    book.rebuild()
    assert book.state(N1) == before


@pytest.mark.parametrize("cut", Cut)
def test_of_appends_in_one_transaction_each_keeps_its_result(
    proxied: tuple[CuttingProxy, SqlJournal], cut: Cut
) -> None:
    """Three share a transaction whose connection is cut, one of them with a lost claim: two are written once, in their
    order, and the third is refused before and after.
    """
    proxy, book = proxied
    nodes = [N1, NodeId("n2"), NodeId("n3")]
    claims = book.claim(nodes, "r1").granted
    book.append([added(node) for node in nodes])
    book.release([claims[nodes[1]]])
    proxy.cut = cut
    first, refused, third = book.append_each([Append([started(node)], claims[node]) for node in nodes])
    assert proxy.cuts == 1
    assert isinstance(refused, ClaimLostError)
    assert [tuple(book.history(Stream.NODE, node))[1:] for node in nodes] == [first, (), third]
    before = book.states_of(nodes)
    book.rebuild()
    assert book.states_of(nodes) == before


def test_no_statement_is_sent_through_a_pipeline(url: str) -> None:
    """A writer that is stopped inside psycopg's pipeline keeps the writers' lock: PostgreSQL's timeout for idle
    transactions does not count there. Rows of claims, events, states, heads and evidence go in single statements.
    """
    book, piped = open_journal(url, StepClock(), Holder("r1")), list[str]()
    event.listen(book._database.engine, "do_executemany", lambda _c, statement, *_: piped.append(statement))
    nodes = [N1, NodeId("n2")]
    claims = book.claim(nodes, "r1").granted
    book.append([added(node) for node in nodes])
    book.append_each([Append([started(node)], claims[node]) for node in nodes])
    book.store([EVIDENCE, replace(EVIDENCE, source="another")])
    assert {state.attempts for state in book.states()} == {1}
    book.release(claims.values())
    book.rebuild()
    book.close()
    assert piped == []


def test_what_was_written_counts_though_the_claim_is_lost_meanwhile(
    proxied: tuple[CuttingProxy, SqlJournal], url: str
) -> None:
    """The answer is lost, and before the line is back another run holds the node: what was written then was ours to
    write, and is confirmed; the next append is refused.
    """
    proxy, book = proxied
    claim = book.claim([N1], "r1").granted[N1]
    thief = open_journal(url, StepClock(), Holder("r2"))

    def steal() -> None:
        thief.release([claim])
        assert N1 in thief.claim([N1], "r2").granted

    proxy.cut, proxy.meanwhile = Cut.ANSWER, steal
    assert book.append([added()], claim=claim) == tuple(thief.history(Stream.NODE, N1))
    with pytest.raises(ClaimLostError, match="run r2"):
        book.append([started()], claim=claim)
    thief.close()


@pytest.mark.parametrize("cut", Cut)
def test_claims_and_evidence_survive_a_cut_line(proxied: tuple[CuttingProxy, SqlJournal], cut: Cut) -> None:
    """Claiming, renewing, storing and releasing may happen twice and then are what they are once."""
    proxy, book = proxied
    proxy.cut = cut
    claim = book.claim([N1], "r1").granted[N1]
    proxy.cut = cut
    assert book.renew([claim]) == {}
    book.append([added()], claim=claim)
    proxy.cut = cut
    book.store([EVIDENCE])
    assert isinstance(book.evidence(EVIDENCE.digest), Evidence)
    proxy.cut = cut
    book.release([claim])
    assert proxy.cuts == 4
    with pytest.raises(ClaimLostError):
        book.append([started()], claim=claim)
    assert N1 in book.claim([N1], "r2").granted


@pytest.mark.parametrize("reading", [True, False])
def test_a_server_that_ends_the_connection_is_waited_for(url: str, reading: bool) -> None:
    """SQLSTATE 57P01, which an administrator's command and a server that stops send: the transaction runs again."""
    codes: list[str] = []
    database, tries = connect(url), itertools.count(1)
    event.listen(database.engine, "handle_error", lambda context: codes.append(context.original_exception.sqlstate))

    def work(connection: Connection) -> int:
        if (number := next(tries)) == 1:
            connection.execute(select(func.pg_terminate_backend(func.pg_backend_pid())))
        connection.execute(select(1))
        return number

    assert (database.read if reading else database.write)(work) == 2
    assert codes == ["57P01"]
    database.engine.dispose()


def test_a_thread_without_a_connection_waits_for_one(url: str) -> None:
    """Where the server is silent, others wait with all connections that a process may have: no error before theirs."""
    engine = create_engine(url, pool_size=1, max_overflow=0, pool_timeout=0.05)
    with ThreadPoolExecutor(1) as threads:
        with engine.connect():
            reading = threads.submit(Database(engine).read, lambda connection: connection.scalar(text("SELECT 7")))
            with pytest.raises(TimeoutError):
                reading.result(timeout=0.5)
        assert reading.result() == 7
    engine.dispose()


def test_a_value_that_the_server_refuses_is_no_server_that_is_away(url: str) -> None:
    """Waiting changes nothing: a worker would begin the run again and again."""
    book = open_journal(url, StepClock(), Holder("r" * 65))
    with pytest.raises(EnvironmentBrokenError, match="refuses a value") as refused:
        book.append([added()])
    assert not isinstance(refused.value, JournalUnavailableError)
    book.close()


def message(node: str, count: int) -> NewEvent:
    return new_event("node", node, Kind.INSTALL_PROGRESS, {"at": "2026-01-01T00:00:00+00:00", "message": str(count)})


@pytest.mark.parametrize("mode", ["fast", "immediate"])
def test_writers_outlive_a_restart(postgresql: PostgresServer, url: str, mode: str) -> None:
    """Several processes' worth of writers go on through a restart in order and through a crash: every append is there
    once, in its writer's order, and the states are the fold.
    """
    over, underway = threading.Event(), threading.Barrier(WRITERS + 1)

    def write(name: str) -> int:
        book = open_journal(url, StepClock(), Holder(name))
        for count in itertools.count(1):
            book.append([added(name) if count == 1 else message(name, count)])
            if count == 5:
                underway.wait(600)
            if over.is_set() and count > 5:
                book.close()
                return count
        raise AssertionError

    names = [f"w{number}" for number in range(WRITERS)]
    with ThreadPoolExecutor(WRITERS) as pool:
        writing = [pool.submit(write, name) for name in names]
        underway.wait(600)
        postgresql.restart(mode)
        over.set()
        counts = [done.result() for done in writing]
    book = open_journal(url, StepClock())
    for name, count in zip(names, counts, strict=True):
        events = list(book.history(Stream.NODE, name))
        assert [data_of(event).get("message", "1") for event in events] == [
            str(number) for number in range(1, count + 1)
        ]
    before = book.states()
    book.rebuild()
    assert book.states() == before
    book.close()


def test_a_server_that_stays_away_is_an_error_once_waited_for(postgresql: PostgresServer, url: str) -> None:
    """After its patience the append ends in a sentence with exit code 3 and has written nothing; those after it do not
    wait as long again; when the server is back, all goes on.
    """
    book = open_journal(url, StepClock(), Holder("r1"), reconnect_s=0.5)
    book.append([added()])
    postgresql.stop()
    for _ in range(2):
        with pytest.raises(EnvironmentBrokenError, match="the journal's database failed") as broken:
            book.append([started()])
        assert broken.value.exit_code == 3
    with pytest.raises(EnvironmentBrokenError):
        book.states()
    postgresql.start()
    book.append([started()])
    assert book.state(N1).events == 2
    book.close()


def test_no_session_may_hold_the_writers_lock_in_silence(url: str) -> None:
    """The server itself ends the transaction of a writer that was stopped in it, before the others give up waiting."""
    book = open_journal(url, StepClock(), Holder("r1"))
    settings = [_ask(book, f"SHOW {name}") for name in ("idle_in_transaction_session_timeout", "lock_timeout")]
    assert settings == ["10s", "30s"]
    book.close()


def _ask(book: SqlJournal, query: str) -> str:
    return str(book._database.read(lambda connection: connection.exec_driver_sql(query).scalar()))


def test_states_of_many_nodes_survive(postgresql: PostgresServer, url: str) -> None:
    """Reads too are tried again: a list of the fleet does not fail because the server was restarted before it."""
    book = open_journal(url, StepClock(), Holder("r1"))
    book.append([added(f"n{number}") for number in range(5)])
    postgresql.restart()
    assert len(book.states()) == len(book.summaries()) == 5
    assert book.state(NodeId("n3")).name == "node-n3"
    book.close()


def test_a_run_that_a_worker_has_taken_waits_for_the_server_from_the_start(
    postgresql: PostgresServer, url: str
) -> None:
    """A run that begins during a fail-over is no failed run. Without a claim on it a wrong address is reported at once."""
    book = open_journal(url, StepClock(), Holder("r1"))
    claim = book.claim([N1], "r1").granted[N1]
    book.close()
    postgresql.stop()
    with pytest.raises(EnvironmentBrokenError):
        open_journal(url, StepClock(), Holder("r1"))
    with ThreadPoolExecutor(1) as threads:
        opening = threads.submit(open_journal, url, StepClock(), Holder("r1", under=claim))
        postgresql.start()
        opening.result().close()


def test_a_server_without_disk_for_a_moment_is_waited_for(url: str) -> None:
    """PostgreSQL refuses two transactions since it cannot extend a file (53100); the third one is written, once."""
    book = open_journal(url, StepClock(), Holder("r1"))
    with connect(url).engine.begin() as connection:
        for statement in _FULL_TWICE:
            connection.exec_driver_sql(statement)
    assert len(book.append([added()])) == 1
    assert len(list(book.history(Stream.NODE, N1))) == 1
    book.close()


def test_the_error_of_a_full_server_has_its_own_message(url: str) -> None:
    """What PostgreSQL reports names the file: a segment of shared memory is another remedy than a table."""
    book = open_journal(url, StepClock(), Holder("r1"), reconnect_s=0.0)
    with connect(url).engine.begin() as connection:
        for statement in _FULL_TWICE:
            connection.exec_driver_sql(statement)
    with pytest.raises(EnvironmentBrokenError, match="could not extend the file"):
        book.append([added()])
    book.close()


def test_no_query_needs_shared_memory_of_parallel_workers(url: str) -> None:
    """A server that would run each query in parallel does not for us: its /dev/shm may be too small for it."""
    forced = f"{url}&options=-cparallel_setup_cost%3D0%20-cparallel_tuple_cost%3D0%20-cmin_parallel_table_scan_size%3D0"
    open_journal(forced, StepClock(), Holder("r1")).close()
    counted = "EXPLAIN SELECT count(*) FROM node_state WHERE state LIKE '%%x%%'"
    plan = connect(forced).read(lambda connection: connection.exec_driver_sql(counted).scalars().all())
    assert not [line for line in plan if "Gather" in line]


_FULL_TWICE = (
    "CREATE SEQUENCE refused",
    """CREATE FUNCTION full_twice() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
    IF nextval('refused') <= 2 THEN RAISE EXCEPTION 'could not extend the file' USING ERRCODE = '53100'; END IF;
    RETURN NEW; END $$""",
    "CREATE TRIGGER full_twice BEFORE INSERT ON event FOR EACH ROW EXECUTE FUNCTION full_twice()",
)
"""A sequence keeps its value when the transaction is rolled back."""
