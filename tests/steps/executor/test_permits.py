"""The caps on reboots, installs, power-ons and requests to MAAS hold over threads, runs and processes, and a dead run's permits come free."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import Any, cast

import pytest

from clusterctl.edges.journal import Holder, SqlJournal, open_journal
from clusterctl.fleet.errors import CancelledError, UnreachableError
from clusterctl.fleet.node import NodeId
from clusterctl.fleet.stagger import Stagger
from clusterctl.ports import ClaimOwner, Deadline, Journal
from clusterctl.steps.executor.permits import (
    POLL_S,
    NodePermits,
    NoPermitError,
    PermitPool,
    PowerPools,
    install_pool,
    maas_pool,
    reboot_pool,
)
from tests.edges.journal.test_claims import pretend
from tests.fake_timer import FakeTimer
from tests.steps.fakes import FixedClock

HOLDING = """
import sys, time
from clusterctl.edges.clock import CLOCK
from clusterctl.edges.journal import Holder, open_journal
from clusterctl.ports import Deadline
from clusterctl.steps.executor.permits import reboot_pool

with reboot_pool(open_journal(sys.argv[1], CLOCK, Holder("other")), 3).taken(2, Deadline.after(60)) as count:
    print(count, flush=True)
    time.sleep(600)
"""


def journal(url: str, run: str = "r1") -> SqlJournal:
    return open_journal(url, FixedClock(), Holder(run))


def over(seconds: float = 10.0) -> Deadline:
    """One whose time passes by itself."""
    return Deadline.after(seconds, timer=FakeTimer())


def test_no_more_than_the_cap_over_two_runs(url: str) -> None:
    """What one run has taken is missing to the other, until it is returned."""
    first, second = (reboot_pool(journal(url, run), 5) for run in ("r1", "r2"))
    with first.taken(3, over()) as three, second.taken(9, over()) as two:
        assert (three, two) == (3, 2)
        with pytest.raises(NoPermitError, match="5 may reboot at once"), first.taken(1, over()):
            pytest.fail("the cap was passed")
    with second.taken(9, over()) as five:
        assert five == 5


class Slow:
    """A journal in which another run takes permits after this one has looked how many are free."""

    def __init__(self, book: SqlJournal, other: PermitPool) -> None:
        self._book, self._other = book, other

    def __getattr__(self, name: str) -> Any:
        return getattr(self._book, name)

    def owners(self, prefix: str) -> tuple[ClaimOwner, ...]:
        found = self._book.owners(prefix)
        self._other.take(3)
        return found


def test_two_runs_that_look_at_once_pass_no_pace(url: str) -> None:
    """While the subnet manager is busy, 4 of 16 hosts may reboot; the other run has 3 of them by the time this one
    takes its own.
    """
    book = journal(url)
    other = reboot_pool(book, 16, pace=lambda _at_most: 4)
    pool = reboot_pool(cast("Journal", Slow(book, other)), 16, pace=lambda _at_most: 4)
    assert len(pool.take(4)) == 1


def test_a_thread_waits_until_another_has_finished(url: str) -> None:
    """Forty hosts, ten threads, three permits: never more than three at once, and all get their turn."""
    pool, lock, running, most = reboot_pool(journal(url), 3), threading.Lock(), 0, 0

    def reboot(_number: int) -> None:
        nonlocal running, most
        with pool.taken(1, over(1e6)):
            with lock:
                running += 1
                most = max(most, running)
            with lock:
                running -= 1

    with ThreadPoolExecutor(10) as threads:
        list(threads.map(reboot, range(40)))
    assert 1 <= most <= 3


def test_cancelled_while_it_waits(url: str) -> None:
    """Ctrl-C ends the wait, and leaves no permit taken."""
    pool, stop = reboot_pool(journal(url), 1), threading.Event()
    with ExitStack() as held:
        held.enter_context(pool.taken(1, over()))
        stop.set()
        with pytest.raises(CancelledError), pool.taken(1, Deadline.after(60, stop)):
            pytest.fail("it was cancelled")
    with pool.taken(1, over()) as count:
        assert count == 1


def test_the_permits_of_a_killed_run_come_free(tmp_path: Path) -> None:
    """Without waiting for the lease: its process is certainly gone."""
    url = f"sqlite:///{tmp_path}/journal.db"
    pool = reboot_pool(journal(url), 3)
    with subprocess.Popen([sys.executable, "-c", HOLDING, url], stdout=subprocess.PIPE, text=True) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == "2\n"
        with pool.taken(3, over()) as left:
            assert left == 1
        os.kill(other.pid, signal.SIGKILL)
        other.wait()
    with pool.taken(3, over()) as all_three:
        assert all_three == 3


def test_nodes_hold_installs_until_they_leave(url: str) -> None:
    """What one run has begun is missing to the other, which is reported once and asks again after a while."""
    now = [100.0]
    first, second = (NodePermits(install_pool(journal(url, run), 3), lambda: now[0]) for run in ("r1", "r2"))
    a, b, c, d = (NodeId(name) for name in "abcd")
    assert first.begin([a, b]) == [a, b]
    assert second.begin([c, d]) == [c]
    assert second.newly_waiting() == [d]
    assert "3 may be installed at once" in second.waiting
    first.leave(a)
    first.keep()
    assert second.begin([d]) == []  # it does not ask the journal each time
    now[0] += POLL_S
    assert second.begin([d]) == [d]
    assert second.newly_waiting() == []
    first.close()
    second.close()
    assert first.begin([a, b, c]) == [a, b, c]


def test_permits_of_nodes_are_renewed(url: str) -> None:
    """An install takes longer than a lease; what was lost to another run is not taken from it again."""
    now, book = [0.0], journal(url)
    permits = NodePermits(install_pool(book, 2), lambda: now[0])
    permits.begin([NodeId("a")])
    (before,) = book.owners("install permit ")
    now[0] += book.lease_s
    permits.keep()
    (after,) = book.owners("install permit ")
    assert after.expires >= before.expires
    assert (after.run, after.live) == (before.run, True)
    pretend(url, expires_at=0.0)
    other = NodePermits(install_pool(journal(url, "r2"), 2))
    assert len(other.begin([NodeId("b"), NodeId("c")])) == 2
    now[0] += book.lease_s
    permits.keep()
    permits.close()
    assert len([owner for owner in book.owners("install permit ") if owner.live]) == 2


def test_machines_of_a_rack_come_on_one_after_the_other_over_two_runs(url: str) -> None:
    """A machine counts until it is on and for the stagger after that, for every run; those of another rack do not."""
    reports: list[str] = []
    first, second = (PowerPools(journal(url, run), Stagger(2, 3600), reports.append) for run in ("r1", "r2"))
    with first.held("A1", over()):
        pass
    with second.held("A1", over()), second.held("A2", over()):
        with pytest.raises(UnreachableError, match=r"of A1 are on: 2 within 3600 s"), first.held("A1", over()):
            pytest.fail("a third machine of the rack came on")
        with first.held("A2", over()):
            pass
    assert reports == ["waiting until other machines of A1 are on: 2 within 3600 s (power.stagger)"]


def test_a_rest_ends_by_itself(url: str) -> None:
    """The database's clock ends it, without a release."""
    pools = PowerPools(journal(url), Stagger(1, 0.01))
    for _ in range(3):
        with pools.held("", over(1e9)):
            pass


def test_requests_to_maas_are_counted_over_two_runs(url: str) -> None:
    """What waits reports why, once for each wait."""
    reports: list[str] = []
    first, second = (maas_pool(journal(url, run), 1, reports.append) for run in ("r1", "r2"))
    with (
        first.taken(1, over()),
        pytest.raises(NoPermitError, match="requests_at_once"),
        second.taken(1, over()),
    ):
        pytest.fail("a second request was sent")
    assert len(reports) == 1
    with second.taken(1, over()):
        pass
