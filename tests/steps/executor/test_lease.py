"""The run's right to its nodes: certain for half a lease after the journal's answer, then renewed before any act."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

import pytest

from clusterctl.edges.journal import Holder, SqlJournal, open_journal
from clusterctl.fleet.acts import Act
from clusterctl.fleet.errors import CancelledError, ClaimLostError
from clusterctl.fleet.node import NodeId
from clusterctl.ports import Claim, Claims, Deadline, Journal
from clusterctl.steps.executor.intent_log import IntentLog
from clusterctl.steps.executor.lease import Lease, repeated, sole_claim
from tests.steps.fakes import FixedClock, identified

N1, N2 = NodeId("id-n1"), NodeId("id-n2")
LEASE_S = 100.0


class HandClock:
    """Seconds since boot, moved by hand."""

    def __init__(self) -> None:
        self.at = 1000.0

    def __call__(self) -> float:
        return self.at


class Counting:
    """A real journal whose renewals are counted and take a while."""

    def __init__(self, book: SqlJournal, clock: HandClock, takes_s: float = 0.0) -> None:
        self._book = book
        self._clock = clock
        self._takes_s = takes_s
        self.renewals = 0
        self.renewed = threading.Semaphore(0)
        self.lease_s = book.lease_s

    def renew(self, claims: Iterable[Claim]) -> Mapping[NodeId, str]:
        self.renewals += 1
        self._clock.at += self._takes_s
        lost = self._book.renew(claims)
        self.renewed.release()
        return lost

    def claim(self, nodes: Iterable[NodeId], run: str) -> Claims:
        return self._book.claim(nodes, run)

    def release(self, claims: Iterable[Claim], rest_s: float = 0.0) -> None:
        self._book.release(claims, rest_s)


@pytest.fixture
def book() -> Iterator[SqlJournal]:
    opened = open_journal("sqlite://", FixedClock(), Holder("r1", lease_s=LEASE_S))
    yield opened
    opened.close()


def leased(book: SqlJournal, clock: HandClock, takes_s: float = 0.0) -> tuple[Lease, Counting]:
    journal = Counting(book, clock, takes_s)
    lease = Lease(journal, book.claim([N1, N2], "r1").granted, clock)  # type: ignore[arg-type]
    lease.keep()
    return lease, journal


def steal(book: SqlJournal, claim: Claim) -> Claim:
    """Another run takes the node over."""
    book.release([claim])
    return book.claim([claim.node], "thief").granted[claim.node]


def test_it_is_renewed_in_time_and_not_more_often(book: SqlJournal) -> None:
    """Four times a lease, however often it is asked to keep it."""
    clock = HandClock()
    lease, journal = leased(book, clock)
    for _ in range(int(LEASE_S)):
        clock.at += 1
        lease.keep()
    assert 3 <= journal.renewals - 1 <= 4


def test_the_fence_asks_again_once_half_a_lease_has_passed(book: SqlJournal) -> None:
    """Within half a lease the journal's last word counts; after it the journal is asked before the act goes on."""
    clock = HandClock()
    lease, journal = leased(book, clock)
    fence = lease.fence([N1])
    clock.at += LEASE_S / 2
    fence()
    assert journal.renewals == 1
    clock.at += 1
    fence()
    assert journal.renewals == 2


def test_a_controller_that_slept_finds_out_before_it_acts(book: SqlJournal) -> None:
    """Resumed after hours, its node another's: the fence refuses, names the new owner, and the rest stays ours."""
    clock = HandClock()
    lease, _ = leased(book, clock)
    mine, other = lease.fence([N1]), lease.fence([N2])
    clock.at += 7200
    steal(book, lease.claim(N1))
    with pytest.raises(ClaimLostError, match="run thief") as lost:
        mine()
    assert lost.value.where == N1
    other()
    with pytest.raises(ClaimLostError):
        lease.claim(N1)
    assert list(lease.lost) == [N1]


def test_a_clock_that_was_set_is_asked_about(book: SqlJournal) -> None:
    """By it SQLite's claims expire at once, and a virtual machine that was paused notices that time has passed. Set
    back, it changes nothing.
    """
    clock, wall = HandClock(), HandClock()
    journal = Counting(book, clock)
    claims = book.claim([N1], "r1").granted
    fence = Lease(journal, claims, clock, wall).fence([N1])  # type: ignore[arg-type]
    fence()
    wall.at -= LEASE_S
    fence()
    assert journal.renewals == 1
    wall.at += 2 * LEASE_S
    steal(book, claims[N1])
    with pytest.raises(ClaimLostError):
        fence()


def test_what_is_repeated_goes_on_after_an_error(caplog: pytest.LogCaptureFixture) -> None:
    """Whatever it is: it is logged, and the claims are renewed at the next turn."""
    turns, over = iter([ValueError("a number that is none"), None]), threading.Event()

    def act() -> bool:
        if error := next(turns):
            raise error
        over.set()
        return False

    with repeated(act, 0.001, "claims"):
        assert over.wait(60)
    assert "claims failed" in caplog.text


def test_the_lease_counts_from_before_it_was_asked_for(book: SqlJournal) -> None:
    """An answer that took long confirms what was true when it was asked, not when it came."""
    clock = HandClock()
    lease, journal = leased(book, clock, takes_s=LEASE_S / 2 + 1)
    lease.fence([N1])()
    assert journal.renewals == 2


def test_what_was_given_back_is_free_and_fences_no_run(book: SqlJournal) -> None:
    """A node that is over can be claimed by others at once; a batch that it was in goes on with the rest."""
    clock = HandClock()
    lease, _ = leased(book, clock)
    fence = lease.fence([N1, N2])
    lease.give_back([N1])
    assert N1 in book.claim([N1], "other").granted
    clock.at += LEASE_S
    fence()
    assert not lease.lost
    with pytest.raises(ClaimLostError, match="given it back"):
        lease.claim(N1)


def test_nothing_goes_through_once_the_run_is_over(book: SqlJournal) -> None:
    """A thread that still works when its run has ended is stopped at its next request."""
    lease, _ = leased(book, HandClock())
    fence = lease.fence([N1])
    lease.close()
    with pytest.raises(CancelledError):
        fence()


def test_every_look_at_the_deadline_looks_at_the_fence(book: SqlJournal) -> None:
    """SiteAdapters know only the deadline: its checks, shorter ones and sleeps refuse as soon as the node is another's."""
    identified(book, "n1", "S1")
    acts = IntentLog(book, book.claim([N1], "r1").granted)
    deadline = acts.fenced([N1], Deadline.after(60))
    deadline.check("acting")
    acts.lease.lose(N1, "held by another run")
    for look in (deadline.check, deadline.within(1.0).check, lambda doing: deadline.sleep(0.0, doing)):
        with pytest.raises(ClaimLostError):
            look("acting")


def test_an_intent_that_is_refused_is_remembered(book: SqlJournal) -> None:
    """Where the journal refuses an intent, the node counts as lost from then on."""
    identified(book, "n1", "S1")
    journal: Journal = book
    acts = IntentLog(journal, book.claim([N1], "r1").granted)
    steal(book, acts.lease.claim(N1))
    with pytest.raises(ClaimLostError):
        acts.intend(N1, Act.INSTALL_START, "S1")
    assert "run thief" in acts.lease.lost[N1]


def test_a_sole_claim_that_is_lost_is_reported_once(tmp_path: Path) -> None:
    """The controller slept for longer than the lease, and another run has the claim."""
    lost, book = threading.Event(), open_journal(f"sqlite:///{tmp_path}/j.db", FixedClock(), Holder("r1", lease_s=0.02))
    with sole_claim(book, N1, "r1", lost.set) as claim:
        book.release([claim])
        assert lost.wait(600)
    book.close()


def test_a_sole_claim_is_kept_past_its_lease(tmp_path: Path) -> None:
    """It is renewed in the background; the end of the block releases it."""
    book = open_journal(f"sqlite:///{tmp_path}/j.db", FixedClock(), Holder("r1", lease_s=0.04))
    counting, lost = Counting(book, HandClock()), threading.Event()
    with sole_claim(counting, N1, "r1", lost.set):  # type: ignore[arg-type]
        for _ in range(5):
            assert counting.renewed.acquire(timeout=600)
        assert not lost.is_set()
    book.close()
