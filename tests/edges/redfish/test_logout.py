"""A session is closed also where the BMC is slow: the log-out has the time that this BMC was seen to need."""

from __future__ import annotations

import time
from dataclasses import replace

import pytest

from clusterctl.edges.redfish import RedfishBmcs, Timing, connection
from clusterctl.edges.redfish.transport import Stopwatch
from clusterctl.fleet.errors import EdgeError
from clusterctl.ports import BmcAddress, Deadline, Power
from tests.edges.redfish.conftest import QUICK, FixedClock
from tests.edges.redfish.replay import SESSIONS, Bmc, Handler

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
