"""Threads that write at the same time share one transaction, and each gets what it would have got alone."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import pytest
from sqlalchemy import event

from clusterctl.edges.journal import SqlJournal
from clusterctl.edges.journal.gathering import Gathered
from clusterctl.fleet.errors import ClaimLostError, ConflictError, JournalUnavailableError
from clusterctl.fleet.event import Stream
from clusterctl.fleet.node import NodeId, Stage
from clusterctl.ports import Append
from tests.edges.journal.conftest import Open
from tests.edges.journal.life import added, started
from tests.events import advances

MANY = 250
REFUSED, SILENT = 13, 99


class Gate:
    """Work that waits at its first call until it is let through; `calls` has what each was asked."""

    def __init__(self) -> None:
        self.calls: list[list[int]] = []
        self.reached, self.open = threading.Event(), threading.Event()

    def work(self, asked: Sequence[int]) -> list[int]:
        self.calls.append(list(asked))
        if len(self.calls) == 1:
            self.reached.set()
            self.open.wait()
        if REFUSED in asked:
            raise ConflictError("it is refused")
        if SILENT in asked:
            raise JournalUnavailableError("no answer")
        return [10 * number for number in asked]


def asked_together(gate: Gate, numbers: Sequence[int], most: int = 100) -> list[int | Exception]:
    """Return what came of each number: the first is at work while all others ask."""
    gathered = Gathered(gate.work, most)
    with ThreadPoolExecutor(len(numbers)) as threads:
        first = threads.submit(gathered.each, numbers[:1])
        gate.reached.wait()
        others = [threads.submit(gathered.each, [number]) for number in numbers[1:]]
        while len(gathered._waiting) < len(others):
            time.sleep(0.01)
        gate.open.set()
        return [result for future in (first, *others) for result in future.result()]


def test_those_that_ask_meanwhile_are_served_together() -> None:
    """Twenty threads ask while one is served: they are one call of the work, and each has its own result."""
    gate = Gate()
    assert asked_together(gate, range(21, 41)) == [10 * number for number in range(21, 41)]
    assert [len(call) for call in gate.calls] == [1, 19]


def test_one_call_takes_no_more_than_most() -> None:
    gate = Gate()
    assert asked_together(gate, range(21, 41), most=8) == [10 * number for number in range(21, 41)]
    assert [len(call) for call in gate.calls] == [1, 8, 8, 3]


def test_one_that_is_refused_spoils_no_other() -> None:
    """All are tried together, then each alone: the error is its own thread's."""
    first, refused, third = asked_together(Gate(), [1, REFUSED, 3])
    assert (first, third) == (10, 30)
    assert isinstance(refused, ConflictError)


def test_a_journal_that_does_not_answer_is_asked_once_for_all() -> None:
    """Each try waits for a minute: none is tried alone."""
    gate = Gate()
    results = asked_together(gate, [1, SILENT, 3])
    assert [type(result) for result in results[1:]] == [JournalUnavailableError] * 2
    assert len(gate.calls) == 2


def test_an_interrupted_thread_leaves_no_other_waiting() -> None:
    """Ctrl-C reaches the thread that works for all: the others get an error, and the next one is served again."""

    def work(asked: Sequence[int]) -> list[int]:
        if 1 in asked:
            raise KeyboardInterrupt
        return list(asked)

    gathered = Gathered(work, 100)
    with pytest.raises(KeyboardInterrupt):
        gathered.each([1])
    assert gathered.each([2]) == [2]


@contextmanager
def counted(book: SqlJournal) -> Iterator[list[str]]:
    """The transactions that the journal commits for the time."""
    committed: list[str] = []

    def note(_connection: object) -> None:
        committed.append("commit")

    event.listen(book._database.engine, "commit", note)
    yield committed
    event.remove(book._database.engine, "commit", note)


def test_many_appends_are_few_transactions(book: SqlJournal) -> None:
    """A step that begins on 250 nodes is three transactions, and each node's events are there under its claim."""
    nodes = [NodeId(f"n{number}") for number in range(MANY)]
    book.append([added(node) for node in nodes])
    claims = book.claim(nodes, "r1").granted
    with counted(book) as committed:
        written = book.append_each([Append([started(node)], claims[node]) for node in nodes])
    assert len(committed) == 3
    assert [events[0].subject for events in written if not isinstance(events, Exception)] == nodes
    assert {len(list(book.history(Stream.NODE, node))) for node in nodes} == {2}
    assert {state.attempts for state in book.states_of(nodes).values()} == {1}


def test_a_lost_claim_refuses_its_own_append(book: SqlJournal, opened: Open) -> None:
    """Of three nodes one is another run's meanwhile, and one has a move that no stage allows: the third is written."""
    a, b, c = (NodeId(name) for name in "abc")
    book.append([added(node) for node in (a, b, c)])
    claims = book.claim([a, b, c], "r1").granted
    book.release([claims[a]])
    assert a in opened("r2").claim([a], "r2").granted
    before = book.states_of([a, b])
    lost, refused, written = book.append_each(
        [
            Append([started(a)], claims[a]),
            Append([started(b), *advances(b, "gold", Stage.CABLED)], claims[b]),
            Append([started(c)], claims[c]),
        ]
    )
    assert isinstance(lost, ClaimLostError)
    assert "run r2" in lost.message
    assert isinstance(refused, ConflictError)
    assert book.states_of([a, b]) == before
    assert tuple(book.history(Stream.NODE, c))[-1:] == written
