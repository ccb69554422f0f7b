"""When a window is open, by the site's own clocks."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

from clusterctl.fleet.errors import UsageError
from clusterctl.fleet.nightly.window import parse_window

BERLIN = ZoneInfo("Europe/Berlin")


def moment(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


def test_a_window_is_the_sites_not_the_controllers() -> None:
    """02:00-05:00 in Berlin's winter is 01:00-04:00 UTC; its end is outside."""
    window = parse_window("02:00-05:00", BERLIN, where="x")
    opening = window.at(moment("2026-01-10T01:00"))
    assert opening is not None
    assert (opening.start, opening.end) == (moment("2026-01-10T01:00"), moment("2026-01-10T04:00"))
    assert window.at(moment("2026-01-10T00:59")) is None
    assert window.at(moment("2026-01-10T04:00")) is None


@pytest.mark.parametrize("now", ["2026-01-10T23:30", "2026-01-11T02:59"])
def test_a_window_over_midnight_is_one(now: str) -> None:
    """Before and after midnight it is the same night."""
    opening = parse_window("23:00-04:00", BERLIN, where="x").at(moment(now))
    assert opening is not None
    assert (opening.start, opening.end) == (moment("2026-01-10T22:00"), moment("2026-01-11T03:00"))


@pytest.mark.parametrize(("day", "hours"), [("2026-03-29", 2), ("2026-10-25", 4), ("2026-11-01", 3)])
def test_clocks_that_change_make_a_night_shorter_or_longer(day: str, hours: int) -> None:
    """What fits is counted in hours that pass: 01:00-04:00 is 2 hours in spring's night, 4 in autumn's."""
    window = parse_window("01:00-04:00", BERLIN, where="x")
    opening = window.at(moment(f"{day}T00:30"))
    assert opening is not None
    assert (opening.length, window.usual) == (timedelta(hours=hours), timedelta(hours=3))


@pytest.mark.parametrize("text", ["", "2-5", "02:00", "24:00-05:00", "02:00-02:00", "02:60-03:00", "02:00–05:00"])
def test_what_is_no_window_is_refused_where_it_stands(text: str) -> None:
    """With the form that it should have."""
    with pytest.raises(UsageError, match=r"window|begins") as caught:
        parse_window(text, UTC, where="site.yml:9 nightly.window")
    assert caught.value.where == "site.yml:9 nightly.window"
