"""How long an operator's decision counts."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from clusterctl.fleet.durations import parse_until
from clusterctl.fleet.errors import UsageError

NOW = datetime(2026, 11, 21, 7, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("2026-12-01", datetime(2026, 12, 1, tzinfo=UTC)),
        ("2026-12-01T18:00", datetime(2026, 12, 1, 18, tzinfo=UTC)),
        ("2026-12-01T18:00+02:00", datetime(2026, 12, 1, 16, tzinfo=UTC)),
        ("30min", NOW + timedelta(minutes=30)),
        ("12h", NOW + timedelta(hours=12)),
        (" 3d ", NOW + timedelta(days=3)),
        ("2w", NOW + timedelta(weeks=2)),
    ],
)
def test_dates_times_and_spans(text: str, moment: datetime) -> None:
    """A date is its first moment, in UTC; a time is UTC by default."""
    assert parse_until(text, NOW) == moment


@pytest.mark.parametrize("text", ["", "soon", "3", "3y", "-3d", "2026-13-01", "9999-12-31T23:59-23:00", "12 h"])
def test_what_is_no_moment_is_refused(text: str) -> None:
    """With the forms that are understood."""
    with pytest.raises(UsageError, match="no moment") as caught:
        parse_until(text, NOW)
    assert (caught.value.where, "12h" in caught.value.remedy) == ("--until", True)


@pytest.mark.parametrize("text", ["2026-11-21", "2025-01-01", "2026-11-21T08:30+02:00", "0h"])
def test_the_past_is_refused(text: str) -> None:
    """It names the moment that it was understood as."""
    with pytest.raises(UsageError, match="is past"):
        parse_until(text, NOW)


def test_too_far_off_is_refused() -> None:
    """Where there is a longest time."""
    assert parse_until("90d", NOW, longest=timedelta(days=90))
    with pytest.raises(UsageError, match="more than 90 days"):
        parse_until("2027-06-01", NOW, longest=timedelta(days=90))
