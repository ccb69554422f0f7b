"""Times at the ends of the calendar: a text that is a time in its zone, and none in UTC, ends no reading."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from clusterctl.fleet.errors import ParseError
from clusterctl.formats.alertmanager import _time as alert_time
from clusterctl.formats.job_lines import TimeReader
from clusterctl.formats.slurm_jobs import _time as slurm_time
from clusterctl.formats.times import in_utc
from clusterctl.formats.ufm.common import time_of

FIRST, LAST = "0001-01-01T00:00:00+05:00", "9999-12-31T23:59:59-05:00"


@pytest.mark.parametrize("text", [FIRST, LAST])
def test_what_is_out_of_range_is_an_error_of_the_text(text: str) -> None:
    with pytest.raises(ValueError, match="out of range"):
        in_utc(datetime.fromisoformat(text))
    with pytest.raises(ParseError):
        alert_time(text, "alert")
    with pytest.raises(ParseError):
        slurm_time(text)
    with pytest.raises(ParseError):
        time_of(text, UTC)


@pytest.mark.parametrize("text", [FIRST, LAST])
def test_a_line_of_a_log_with_such_a_time_has_none(text: str) -> None:
    """A job's user writes these lines: one of them must not end the reading of all nodes."""
    assert TimeReader(zone=UTC, reference=datetime(2026, 1, 1, tzinfo=UTC)).read(f"{text} rank 3 failed") is None


def test_go_s_zero_time_is_a_time() -> None:
    assert in_utc(datetime.fromisoformat("0001-01-01T00:00:00+00:00")).year == 1
