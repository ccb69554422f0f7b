"""Growth over many readings: the sum of the intervals, with the doubts of each."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clusterctl.cabling.health.counters import Doubt
from clusterctl.cabling.health.days import MOST, thinned, window_over
from clusterctl.fleet.fabric.telemetry import PortCounters, Telemetry
from clusterctl.fleet.fabric.topology import PortId
from clusterctl.fleet.node import Guid
from clusterctl_burnin.limits.fabric_reading import shipped_fabric_limits

LIMITS = shipped_fabric_limits("ndr")
AT = datetime(2026, 3, 1, tzinfo=UTC)
PORT, OTHER = PortId(Guid("00a1"), 1), PortId(Guid("00a1"), 2)
SYMBOLS = "SymbolErrorCounter"


def readings(*values: int | None, narrow: bool = True) -> list[Telemetry]:
    """One an hour; None: the port was not read."""
    return [
        Telemetry(
            {PORT: PortCounters({SYMBOLS: value}, narrow)}
            if value is not None
            else {OTHER: PortCounters({SYMBOLS: 0})},
            at=AT + timedelta(hours=hour),
        )
        for hour, value in enumerate(values)
    ]


@pytest.mark.parametrize(
    ("values", "added", "doubt"),
    [
        ((5, 5, 5), 0, None),
        ((5, 8, 20), 15, None),
        ((5, 8, 2, 4), 7, Doubt.CLEARED),
        ((5, 0xFFFF, 0xFFFF), 0xFFFF - 5, Doubt.STOPPED),
        ((5, 0xFFFF, 3), 0xFFFF - 5 + 3, Doubt.STOPPED),
        ((5, None, 9), 0, Doubt.NOT_READ),
        ((None, 5, 9), 4, Doubt.NOT_READ),
    ],
)
def test_growth_is_that_of_all_intervals_and_so_is_each_doubt(values, added, doubt):
    window = window_over(readings(*values), LIMITS, {})
    assert window is not None
    grown = window.growth(PORT)
    assert (grown.of(SYMBOLS), grown.doubts.get(SYMBOLS)) == (added, doubt)
    assert window.seconds == 3600 * (len(values) - 1)


def test_a_wide_counter_wraps_and_is_not_cleared():
    window = window_over(readings(2**64 - 10, 5, narrow=False), LIMITS, {})
    assert window is not None
    assert (window.growth(PORT).of(SYMBOLS), window.growth(PORT).doubts.get(SYMBOLS)) == (15, None)


@pytest.mark.parametrize(
    ("narrow", "wide", "added", "doubt"),
    [(5, 9, 4, None), (0xFFFF, 70000, 0, Doubt.STOPPED), (3, 70000, 0, Doubt.STOPPED)],
)
def test_of_two_tools_one_may_stop_where_the_other_goes_on(narrow, wide, added, doubt):
    """Ibqueryerrors reads 16 bits of the symbol errors, a db_csv 64."""
    first = readings(narrow)[0]
    last = Telemetry({PORT: PortCounters({SYMBOLS: wide}, narrow=False)}, at=AT + timedelta(hours=1))
    window = window_over([first, last], LIMITS, {})
    assert window is not None
    grown = window.growth(PORT)
    assert (grown.of(SYMBOLS), grown.doubts.get(SYMBOLS)) == (added, doubt)


def test_readings_count_by_their_times_and_one_is_too_few():
    first, last = readings(3, 9)
    window = window_over([last, first], LIMITS, {})
    assert window is not None
    assert window.growth(PORT).of(SYMBOLS) == 6
    assert window_over([first], LIMITS, {}) is None
    assert window_over([first, first], LIMITS, {}) is None
    assert window_over([Telemetry(first.counters), Telemetry(last.counters)], LIMITS, {}) is None, "no times, no rate"


@given(st.integers(0, 200))
def test_of_a_long_history_the_first_and_the_last_are_kept(count):
    numbers = list(range(count))
    kept = thinned(numbers)
    assert len(kept) == min(count, MOST)
    assert kept == sorted(set(kept))
    assert kept[:1] + kept[-1:] == numbers[:1] + numbers[-1:]
