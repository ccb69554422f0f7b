"""A session is closed also where the BMC is slow: the log-out has the time that this BMC was seen to need."""

from __future__ import annotations

import threading
import time
from dataclasses import replace

import pytest

from clusterctl.edges.redfish import RedfishBmcs, Timing, connection
from clusterctl.edges.redfish.transport import Stopwatch
from clusterctl.fleet.errors import CancelledError, EdgeError
from clusterctl.ports import BmcAddress, Deadline, Power
from tests.edges.redfish.conftest import QUICK, FixedClock
from tests.edges.redfish.replay import SESSIONS, Bmc, Handler
from tests.fake_timer import FakeTimer
from tests.faulty import Fault, hang, status

SLOW_S = 0.4


class Hands:
    """A clock that a test moves."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now

    def wait_in_vain(self, seconds: float) -> None:
        self.now += seconds
        raise EdgeError("no answer")


def test_the_slowest_answer_counts() -> None:
    """Not the last one, and not what ended in an error."""
    hands = Hands()
    watch = Stopwatch(hands)
    for seconds in (1.0, 3.0, 0.5):
        with watch.answer():
            hands.now += seconds
    with pytest.raises(EdgeError), watch.answer():
        hands.wait_in_vain(60.0)
    assert watch.slowest == 3.0


@pytest.mark.parametrize(
    ("slowest", "seconds"),
    [(0.0, 5.0), (1.0, 5.0), (1.5, 6.0), (3.0, 12.0), (7.0, 28.0), (60.0, 30.0)],
)
def test_how_long_a_logout_may_take(slowest: float, seconds: float) -> None:
    """Four of the slowest answers, for it may have to connect again; five seconds at least, thirty at most."""
    assert Timing().logout_seconds(slowest) == seconds


def test_the_setting_of_a_test_holds() -> None:
    """A timing that gives more than the most is taken at its word."""
    assert Timing(logout=50.0).logout_seconds(0.0) == 50.0


def test_a_slow_bmc_is_left_without_a_session(served: tuple[Bmc, BmcAddress], monkeypatch: pytest.MonkeyPatch) -> None:
    """Its log-out takes longer than the shortest time for one, and is waited for: it once took 100 s to answer."""
    server, address = served
    hands = Hands()
    monkeypatch.setattr(connection, "Stopwatch", lambda: Stopwatch(hands))

    def slow(handler: Handler) -> None:
        hands.now += 100
        handler.do_GET()

    def late(handler: Handler) -> None:
        time.sleep(SLOW_S)
        handler.do_DELETE()

    server.faults["GET", "/redfish/v1/Systems/1"] = [slow]
    server.faults["DELETE", f"{SESSIONS}/7"] = [late]
    timing = replace(QUICK, logout=SLOW_S / 8, logout_max=200.0)
    with RedfishBmcs(FixedClock(), timing).open(address, Deadline.after(60)) as bmc:
        assert bmc.power(Deadline.after(60)).value is Power.ON
    assert server.open_sessions == 0


class Interrupted(FakeTimer):
    """Ctrl-C while a BMC answers. `noticed`: the client has looked at its time after that; `answered`: the BMC has."""

    def __init__(self) -> None:
        super().__init__()
        self.stopped, self.noticed, self.answered = threading.Event(), threading.Event(), threading.Event()

    def now(self) -> float:
        if self.stopped.is_set():
            self.noticed.set()
        return super().now()

    def during(self, answer: Fault) -> Fault:
        """Return a fault that answers only after the interruption was noticed."""

        def interrupted(handler: Handler) -> None:
            self.stopped.set()
            self.noticed.wait(600)
            try:
                answer(handler)
            finally:
                self.answered.set()

        return interrupted


def log_in(handler: Handler) -> None:
    handler._log_in(handler.body)


@pytest.mark.parametrize("renewed", [False, True], ids=["first login", "login after the BMC ended the session"])
def test_a_login_under_way_when_the_run_is_stopped_leaves_no_session(
    served: tuple[Bmc, BmcAddress], renewed: bool
) -> None:
    """Its answer is waited for, since it alone names the session; then the session is closed and the run ends."""
    server, address = served
    timer = Interrupted()
    server.faults["POST", SESSIONS] = [*[log_in] * renewed, timer.during(log_in)]
    server.faults["GET", "/redfish/v1/Systems/1"] = [status(401)] * (2 * renewed)
    deadline = Deadline.after(60, timer.stopped, timer)
    with pytest.raises(CancelledError), RedfishBmcs(FixedClock(), QUICK).open(address, deadline) as bmc:
        bmc.power(deadline)
    timer.noticed.set()
    assert timer.answered.wait(600)
    assert server.asked.count(("POST", SESSIONS)) == 1 + renewed
    assert server.open_sessions == 0


def test_a_stopped_run_does_not_wait_for_a_login_for_ever(served: tuple[Bmc, BmcAddress]) -> None:
    """A BMC that answers no login holds up the end as long as a log-out may take, not until the run's deadline."""
    server, address = served
    timer = Interrupted()
    waited: list[float] = []

    def silent(handler: Handler) -> None:
        timer.advance(QUICK.logout - 1)
        looks = timer.looks
        while timer.looks == looks:
            handler.server.released.wait(0.01)
        waited.append(timer.now())
        timer.advance(1)
        hang(handler)

    server.faults["POST", SESSIONS] = [timer.during(silent)]
    deadline = Deadline.after(3600, timer.stopped, timer)
    with pytest.raises(CancelledError), RedfishBmcs(FixedClock(), QUICK).open(address, deadline):
        pass
    assert waited
    assert timer.now() == QUICK.logout
