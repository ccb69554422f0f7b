"""Reboots slow down while the subnet manager is busy, and go on where it cannot be asked."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

from clusterctl.edges.clock import CLOCK
from clusterctl.edges.journal import open_journal
from clusterctl.fleet.errors import EdgeError
from clusterctl.fleet.node import Guid
from clusterctl.ports import Deadline, MasterActivity
from clusterctl.steps.executor.pace import ANSWER_S, LOOK_S, SILENT_S, SubnetManagerPace
from clusterctl.steps.executor.permits import reboot_pool
from tests.fake_timer import FakeTimer

ONE, OTHER = Guid("0x2c5eab0300a1b2c3"), Guid("0x2c5eab0300a1b2c4")
BUSY = 500


class Master:
    """Answers with what it is given, one after another; None for no answer."""

    def __init__(self, *packets: int | None, guid: Guid = ONE) -> None:
        self.answers: Iterator[int | None] = iter(packets)
        self.guid = guid

    def activity(self, deadline: Deadline) -> MasterActivity:
        assert deadline.remaining <= ANSWER_S
        packets = next(self.answers)
        if packets is None:
            raise EdgeError("no answer", where="sminfo")
        return MasterActivity(self.guid, packets)


class Bench:
    def __init__(self, master: Master) -> None:
        self.time, self.changes, self.master = 100.0, list[str](), master
        self.pace = SubnetManagerPace(master, BUSY, self.changes.append, now=lambda: self.time)

    def after(self, seconds: float, at_most: int = 64) -> int:
        self.time += seconds
        return self.pace(at_most)


def test_a_quarter_while_it_is_busy() -> None:
    """Its rate counts, not its count; each change is reported once."""
    bench = Bench(Master(10_000, 10_100, 30_000, 60_000, 60_100))
    assert [bench.after(LOOK_S) for _ in range(5)] == [16, 64, 16, 16, 64]
    assert ["busy" in one or "idle" in one or "packets" in one for one in bench.changes] == [True, True]
    assert "9950 packets a second" in bench.changes[0]


def test_it_is_not_asked_at_each_call() -> None:
    """Between two looks the last answer holds."""
    bench = Bench(Master(0, 10))
    assert [bench.after(LOOK_S / 10) for _ in range(11)] == [*[16] * 10, 64]


def test_no_answer_is_no_idle_manager() -> None:
    """One host may reboot in any case, so that a run ends; after an answer two readings are needed again."""
    bench = Bench(Master(0, 0, None, 5, 6))
    assert [bench.after(LOOK_S, 2) for _ in range(3)] == [1, 2, 1]
    assert [bench.after(SILENT_S, 2), bench.after(LOOK_S, 2)] == [1, 2]
    assert "cannot be asked: no answer" in bench.changes[0]


def test_a_silent_manager_is_seldom_asked() -> None:
    """Each question may take its whole time: a silent manager is asked once in half a minute, and counts as busy."""
    bench = Bench(Master(0, 0, None, None))
    answers = [bench.after(LOOK_S) for _ in range(17)]
    assert answers == [16, 64, *[16] * 15]
    assert bench.after(SILENT_S) == 16
    assert next(bench.master.answers, "asked four times") == "asked four times"


def test_no_thread_waits_for_the_reading_of_another() -> None:
    """While one thread waits for an answer, the others go on by what was known before."""
    asked, answered = threading.Event(), threading.Event()

    class Slow(Master):
        def activity(self, deadline: Deadline) -> MasterActivity:
            asked.set()
            assert answered.wait(60)
            return super().activity(deadline)

    bench = Bench(Slow(0))
    reader = threading.Thread(target=bench.pace, args=(64,))
    reader.start()
    assert asked.wait(60)
    assert bench.pace(64) == 16
    answered.set()
    reader.join(60)
    assert not reader.is_alive()


def test_the_count_of_another_master_is_another_count() -> None:
    """A hand-over is no rate."""
    master = Master(4, 9, 10, 11)
    bench = Bench(master)
    assert [bench.after(LOOK_S), bench.after(LOOK_S)] == [16, 64]
    master.guid = OTHER
    assert [bench.after(LOOK_S), bench.after(LOOK_S)] == [16, 64]


def test_a_count_that_went_back_is_no_rate() -> None:
    """The subnet manager restarted, or its counter of 32 bits began again: two further readings give a rate."""
    bench = Bench(Master(70_000, 70_100, 900, 1_000, 4_294_967_290, 4, 9))
    assert [bench.after(LOOK_S) for _ in range(4)] == [16, 64, 16, 64]
    assert bench.changes == []
    assert [bench.after(LOOK_S) for _ in range(3)] == [16, 16, 64]
    assert len(bench.changes) == 2  # busy with 4,294,966,290 packets, and idle again


def test_permits_that_are_out_count_for_the_smaller_cap(tmp_path: Path) -> None:
    """Eight may reboot and four do: none more is permitted while two are the cap; then the others are."""
    journal = open_journal(f"sqlite:///{tmp_path}/journal.db", CLOCK)
    cap = 8
    pool = reboot_pool(journal, 8, pace=lambda _at_most: cap)
    with pool.taken(4, Deadline.after(10, timer=FakeTimer())) as four:
        assert four == 4
        cap = 2
        assert pool.take(4) == {}
        cap = 8
        assert len(pool.take(9)) == 4
